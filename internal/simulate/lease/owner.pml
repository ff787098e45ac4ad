/* Who may start a tool: a former owner, the process that takes its run over, and time.
 *
 * A tick is a fifth of a lease. Every step of a process may be late by any number of ticks, so
 * one that is suspended or cut off, and an answer that is held back, need no steps of their own.
 *
 * With PRESENCE the run may also be taken over although the owner has its lease: the store takes
 * a process for dead whose connections have all broken. Then the former owner may start the
 * tool for as long as the store's last word counts, and for no longer.
 */
#ifdef FINE /* a tick is a tenth of a lease */
#define LEASE  10
#define HOLDS  6
#define THIRD  3
#define MARGIN 3
#else
#define LEASE  5
#define HOLDS  3 /* contact.holds: three fifths */
#define THIRD  1 /* owner.confirm: the store's last word is younger than a third */
#define MARGIN 1 /* from the check to the start: less than two fifths */
#endif

#define FORMER 1
#define NEXT   2

mtype = { nothing, intended, known, unknown }; /* what the store has of the call */

/* The store. */
byte owner = FORMER;   /* of the head; each commit compares the head's position, so it names it */
byte fence = FORMER;   /* of the head */
bool moved = false;    /* the head has moved since NEXT has read it */
mtype call = nothing;
byte left = LEASE;     /* of FORMER's lease */

/* FORMER's contact.go, in ages. An age that decides nothing any more does not grow. */
byte asked = 0;          /* contact.asked */
byte asking = 0;         /* the renewal under way */
bool renewing = false, landed = false;
byte proof = THIRD + 1;  /* Writer.Acknowledged */
bool within = false;     /* contact has not been broken since then */
byte sent = THIRD + 1;   /* the question under way, of a commit or for the head */
bool sentWithin = false;

bool checked = false;    /* the tool is about to start */
byte late = 0;
byte lost = 0;           /* how long ago the run was taken over from a living owner */
byte started = 0;

#define OLDER(x, most) x = (x < most -> x + 1 : x)

active proctype time() {
	do
	:: d_step { !checked || late < MARGIN ->
		printf("time passes\n");
		left = (left > 0 -> left - 1 : 0);
		OLDER(asked, HOLDS + 1); OLDER(asking, HOLDS + 1); OLDER(proof, THIRD + 1); OLDER(sent, THIRD + 1);
		if
		:: checked -> late++
		:: else
		fi;
		if
		:: owner == NEXT -> OLDER(lost, THIRD + MARGIN + 1)
		:: else
		fi }
	od
}

/* renewal.keep, renewal.hold, contact.renewed */
active proctype renewal() {
	byte gap;
	do
	:: d_step { !renewing -> renewing = true; asking = 0; printf("the owner asks for its lease\n") }
	:: d_step { renewing && !landed -> renewing = false; asking = 0; printf("that is lost\n") }
	:: d_step { renewing && !landed -> landed = true; left = LEASE; printf("the store renews the lease\n") }
	:: d_step { landed -> printf("the owner hears that it has its lease\n");
		gap = asked;
#ifdef RENEWAL_COUNTS_FROM_REPLY
		asked = 0;
#else
		asked = asking;
#endif
		asking = 0; renewing = false; landed = false;
#ifndef BREAK_UNNOTICED
		if
		:: gap > HOLDS -> within = false; sentWithin = false
		:: else
		fi;
#endif
		gap = 0 }
	od
}

#ifdef LEASE_NOT_ASKED
#define HELD true
#else
#define HELD (asked <= HOLDS)
#endif

/* Writer.write and Store.Commit: sent, carried out unless the head is another one, answered. */
inline commit(what) {
	d_step { sent = 0; sentWithin = true; printf("the owner sends a commit: %e\n", what) }
	if
#ifdef FENCE_NOT_COMPARED
	:: d_step { true ->
#else
	:: d_step { owner == FORMER ->
#endif
		printf("the store takes it\n");
		assert(owner == FORMER); /* only the owner writes */
		moved = true;
		call = what }
		d_step { printf("the owner hears that\n");
#ifdef COMMIT_COUNTS_FROM_REPLY
			proof = 0; within = true;
#else
			proof = sent; within = sentWithin;
#endif
			sent = THIRD + 1; sentWithin = false }
#ifndef FENCE_NOT_COMPARED
	:: owner != FORMER -> printf("the store refuses it\n"); goto gone
#endif
	fi
}

#define YOUNG     (HELD && within && proof <= THIRD)
#ifdef HEAD_IS_PROOF
#define CONFIRMED (HELD && sentWithin && sent <= THIRD)
#else
#define CONFIRMED (HELD && within && sentWithin && sent <= THIRD)
#endif

active proctype former() {
	bool same;
#ifndef NO_INTENT
	commit(intended);
#endif
	/* owner.confirm */
	if
#ifdef NOT_CONFIRMED
	:: d_step { true -> checked = true }
#else
	:: d_step { YOUNG -> checked = true; proof = THIRD + 1; printf("the owner is sure\n") }
#endif
	:: else ->
again:		atomic { sent = 0; sentWithin = true; printf("the owner reads the head\n") }
		d_step { printf("the store reads it: of %d\n", owner);
#ifdef HEAD_NOT_COMPARED
			same = true
#else
			same = (fence == FORMER)
#endif
		}
		if
		:: !same -> goto gone
		:: d_step { same && CONFIRMED ->
			checked = true; sent = THIRD + 1; sentWithin = false; same = false; printf("the owner is sure\n") }
		:: d_step { same && !CONFIRMED -> same = false; printf("the owner is not sure\n") }
#ifndef HEAD_IS_PROOF
			if
			:: HELD && !within -> commit(call) /* Writer.Advance */
			:: else
			fi;
#endif
			goto again
		fi
	fi;
	d_step { printf("the owner starts the tool\n");
#ifdef PRESENCE
		assert(lost <= THIRD + MARGIN); /* a taken run starts nothing after that */
#else
		assert(owner == FORMER);        /* one owner starts tools */
		assert(call == intended);       /* the intent is stored, and no outcome */
#endif
		assert(started == 0);           /* once at most once */
		started++; checked = false; late = 0 }
	commit(known);
gone:	skip
}

/* takeovers.succeed: the head, then the lease, then a commit that names the head. */
active proctype next() {
	do
	:: owner == FORMER ->
		d_step { moved = false; printf("the next one reads the head\n") }
#ifdef LEASE_NOT_READ
		skip;
#else
		if
		:: left == 0 -> printf("the next one finds the lease ended\n")
#ifdef PRESENCE
		:: left > 0 -> printf("the next one takes the owner for dead\n")
#else
		:: left > 0 -> goto look
#endif
		fi;
#endif
		if
#ifdef CLAIM_IGNORES_HEAD
		:: d_step { owner == FORMER ->
#else
		:: d_step { !moved ->
#endif
			owner = NEXT; printf("the next one takes the run over\n");
#ifdef CLAIM_WITHOUT_EPOCH
			skip
#else
			fence = NEXT
#endif
			}
		:: moved -> skip
		fi;
look:		skip
#ifdef DOUBT_STARTS_AGAIN
	:: d_step { owner == NEXT && (call == nothing || call == intended) ->
#else
	:: d_step { owner == NEXT && call == intended -> call = unknown; printf("the outcome is unknown\n") }
	:: d_step { owner == NEXT && call == nothing ->
#endif
		printf("the next one starts the tool\n"); assert(started == 0); started++; call = known }
	:: owner == NEXT && (call == known || call == unknown) -> break
	od
}
