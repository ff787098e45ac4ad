/* An accepted run ends: takeovers, hand-overs, runs that were given up, revision pins. Two servers,
 * and one run with one call of a once tool. Time has no place here. That a process that has the
 * lease is the owner when it starts something is what owner.pml is about, so here the check before
 * the tool and the tool's start are one step. That the living are left alone is what silence.pml
 * and presence.pml are about.
 */
#ifndef KILLS
#define KILLS    1
#endif
#ifndef SILENCES
#define SILENCES 1
#endif
#ifndef STOPS
#define STOPS    1
#endif
#ifndef OUTAGES
#define OUTAGES  1
#endif
#ifndef RELOADS
#define RELOADS  2
#endif
#ifndef LOSSES
#define LOSSES   1
#endif
#define TAKEOVERS 2 /* owner.MaxTakeovers, which is 3 */

mtype = { nothing, intended, notStarted, known, unknown }; /* what the store has of the call */
mtype = { up, silent, down };                              /* a server */
mtype = { none, has, stale };                              /* what it has of the run */

/* The store. */
#define NOBODY 2 /* a process that is dead */
byte owner = 0;
mtype call = nothing;
bool handed = false;    /* a message: the owner has left the run; store.HandOver */
bool waiting = false;   /* State.Waiting */
byte takeovers = 0;     /* State.Takeovers */
bool ended = false;

/* The servers. */
mtype server[2] = up;
bool stopping[2] = false;
mtype run_[2] = none;
bool working[2] = false;  /* the tool is running there */
bool doubt[2] = false;    /* the call is in doubt there */
bool unstarted[2] = false;/* starts.end: the last commit says that the call was not started */
bool right[2] = true;     /* it has the revision that the run is with */

byte started = 0;
byte kills = KILLS, silences = SILENCES, stops = STOPS, outages = OUTAGES, reloads = RELOADS, losses = LOSSES;

#define OTHER (1 - i)
#define FORGET(s) run_[s] = none; working[s] = false; doubt[s] = false; unstarted[s] = false
/* A server that is started again is another process. */
#define DIES(s) FORGET(s); server[s] = down; stopping[s] = false; owner = (owner == s -> NOBODY : owner)

/* The owner's process is gone, or looks so; ownerGone. */
#ifdef NO_SWEEP
#define GONE false
#else
#define GONE (owner == NOBODY || (owner == OTHER && server[OTHER] == silent))
#endif
#define GIVEN_UP (owner == i && run_[i] == none)
#define HANDED (handed && owner != i)
#define LOST (!ended && !stopping[i] && run_[i] == none && (GONE || GIVEN_UP || HANDED))

#ifdef PIN_IGNORED
#define MAY true
#else
#define MAY right[i]
#endif
#define OTHERS (server[OTHER] == up && !stopping[OTHER] && right[OTHER])

/* takeovers.become */
inline become() {
	if
	:: MAY && takeovers < TAKEOVERS ->
		printf("server %d takes the run over\n", i);
		assert(right[i]); /* a pinned run goes on with its revision */
		if
		:: run_[OTHER] == has -> run_[OTHER] = stale
		:: else
		fi;
#ifndef TAKEOVERS_NOT_COUNTED
		if
		:: !HANDED -> takeovers++
		:: else
		fi;
#endif
		owner = i; run_[i] = has; handed = false; waiting = false;
		doubt[i] = (call == intended);
		if
		:: call == notStarted -> call = intended; doubt[i] = false /* RenewIntents */
		:: else
		fi
	:: takeovers >= TAKEOVERS || (!MAY && waiting && !OTHERS) ->
		ended = true; printf("server %d cuts the run off\n", i); /* cutOff; Over */
		if
		:: run_[OTHER] == has -> run_[OTHER] = stale
		:: else
		fi
#ifndef GIVEN_UP_NOT_HANDED_OVER
	:: !MAY && GIVEN_UP && OTHERS && takeovers < TAKEOVERS ->
		handed = true; printf("server %d hands over what it gave up\n", i)
#endif
	:: !MAY && !OTHERS && !waiting && takeovers < TAKEOVERS ->
		waiting = true; printf("server %d has the run wait\n", i); /* pin.Keeper.put */
		if
		:: run_[OTHER] == has -> run_[OTHER] = stale
		:: else
		fi
	fi
}

#ifdef GIVEN_UP_NOT_HANDED_OVER
#define HANDS_OVER false
#else
#define HANDS_OVER (GIVEN_UP && OTHERS && !handed)
#endif
#ifdef PIN_HAS_NO_END
#define OVER false
#else
#define OVER (waiting && !OTHERS)
#endif
#define BECOMES (LOST && (MAY || takeovers >= TAKEOVERS || OVER || HANDS_OVER || (!OTHERS && !waiting)))

#ifdef STARTS_AFTER_LEAVING
#define MAY_BEGIN true
#else
#define MAY_BEGIN !unstarted[i]
#endif
#ifdef NO_BOUNDARY
#define BOUNDARY true
#else
#define BOUNDARY !working[i]
#endif

#define OWNS (server[i] == up && run_[i] != none)

proctype process(byte i) {
	do
	:: atomic { server[i] == up && BECOMES -> become() }
	:: atomic { OWNS && run_[i] == stale && !working[i] -> printf("server %d is refused\n", i); FORGET(i) }
#ifdef POISON
	:: atomic { OWNS && run_[i] == has && call == nothing -> DIES(i); printf("the run kills server %d\n", i) }
#endif
	:: atomic { OWNS && run_[i] == has && call == nothing && !stopping[i] && !working[i] ->
#ifdef INTENT_AFTER_START
		printf("server %d starts the tool\n", i); assert(started == 0 && !ended); started++; working[i] = true
#else
		call = intended; printf("server %d stores the intent\n", i)
#endif
		}
	:: atomic { OWNS && run_[i] == has && call == intended && !doubt[i] && !working[i] && MAY_BEGIN ->
		printf("server %d starts the tool\n", i);
		assert(started == 0 && !ended); started++; working[i] = true }
	:: atomic { OWNS && run_[i] == has && call == intended && doubt[i] ->
#ifdef DOUBT_STARTS_AGAIN
		printf("server %d starts the tool\n", i)
		assert(started == 0 && !ended); started++; working[i] = true; doubt[i] = false
#else
		call = unknown; doubt[i] = false; printf("server %d stores that the outcome is unknown\n", i)
#endif
		}
	:: atomic { OWNS && working[i] -> /* the tool ends, and its result is stored, or refused */
		working[i] = false;
		if
		:: run_[i] == has -> call = known; printf("server %d stores the result\n", i)
		:: else -> printf("server %d is refused\n", i); FORGET(i)
		fi }
	:: atomic { OWNS && run_[i] == has && (call == known || call == unknown) ->
		ended = true; FORGET(i); printf("server %d ends the run\n", i) }
	/* A shutdown: at a boundary, the last commit says what was not started, and the run is handed over. */
	:: atomic { OWNS && stopping[i] && run_[i] == has && !unstarted[i] && BOUNDARY ->
		unstarted[i] = true; printf("server %d leaves the run\n", i) }
	:: atomic { OWNS && stopping[i] && run_[i] == has && unstarted[i] ->
		if
		:: call == intended && !doubt[i] -> call = notStarted; printf("it stores that the call was not started\n")
		:: else
		fi;
		FORGET(i); handed = true; printf("server %d hands the run over\n", i) }
	:: atomic { server[i] == up && stopping[i] && run_[i] == none -> DIES(i); printf("server %d is gone\n", i) }
	:: ended -> break
	od
}

/* What comes back by itself: servers that were silent, and those that are started again. */
proctype again(byte i) {
	do
	:: atomic { server[i] == silent -> server[i] = up; printf("server %d is back\n", i) }
	:: atomic { server[i] == down -> server[i] = up; printf("server %d starts again\n", i) }
	:: ended -> break
	od
}

#define FAULTS(s) \
	:: atomic { kills > 0 && server[s] != down -> kills--; DIES(s); printf("server %d is killed\n", s) } \
	:: atomic { silences > 0 && server[s] == up -> silences--; server[s] = silent; printf("server %d is silent\n", s) } \
	:: atomic { stops > 0 && server[s] == up && !stopping[s] -> stops--; stopping[s] = true; \
		printf("server %d shuts down\n", s) } \
	:: atomic { outages > 0 && server[s] == up && run_[s] != none && !working[s] -> outages--; FORGET(s); \
		printf("server %d gives the run up\n", s) } \
	:: atomic { reloads > 0 && run_[s] == none -> reloads--; right[s] = !right[s]; \
		printf("server %d has another revision\n", s) }

proctype faults() {
	do
	FAULTS(0)
	FAULTS(1)
	:: atomic { losses > 0 && handed -> losses--; handed = false; printf("a message is lost\n") }
	:: break
	od
}

init { atomic { run_[0] = has; run process(0); run process(1); run again(0); run again(1); run faults() } }

#ifndef SAFE
ltl ends { <> ended }
#endif
