/* Whose silence counts. The store may be away for any time, again and again, a lease apart: short
 * outages in a row might hit each renewal of the owner and none of the judge. The owner lives and
 * renews its lease whenever it can, so nobody may take its runs over for silence.
 *
 * A tick is a fifteenth of a lease. While the store is away it either refuses at once, as a Redis
 * that starts does, or does not answer until it is back, and it does the same to both. What is
 * due comes before the judge looks.
 */
#define LEASE 15
#define THIRD 5
#define HOLDS 9 /* contact.holds */

bool away = false, refuses = false;
byte calm = LEASE;           /* the time since the store was last away */
byte left = LEASE;           /* of the owner's lease */
byte tick[2] = THIRD;        /* until the next renewal is due: of the owner, 0, and of the judge, 1 */
bool waits[2] = false;       /* a renewal has no answer yet */
byte asked = 0;              /* contact.asked of the judge */
byte asking = 0;
byte since = 0;              /* contact.since */

#define OLDER(x, most) x = (x < most -> x + 1 : x)
#define DUE (tick[0] == 0 || tick[1] == 0 || (!away && (waits[0] || waits[1])))

proctype time() {
	do
	:: d_step { !DUE ->
		printf("time passes\n");
		left = (left > 0 -> left - 1 : 0); tick[0]--; tick[1]--;
		OLDER(asked, HOLDS + 1); OLDER(asking, HOLDS + 1); OLDER(since, LEASE);
		OLDER(calm, LEASE) }
	od
}

proctype outages() {
	do
	:: d_step { !away && calm == LEASE -> away = true; refuses = true; printf("the store is away, and refuses\n") }
	:: d_step { !away && calm == LEASE -> away = true; printf("the store is away, and does not answer\n") }
	:: d_step { away -> away = false; refuses = false; calm = 0; printf("the store is back\n") }
	od
}

/* renewal.keep */
proctype renewals() {
	byte gap;
	do
	:: d_step { tick[0] == 0 -> tick[0] = THIRD; waits[0] = waits[0] || !(away && refuses) }
	:: d_step { waits[0] && away && refuses -> waits[0] = false }
	:: d_step { waits[0] && !away -> waits[0] = false; left = LEASE; printf("the owner has its lease\n") }
	:: d_step { tick[1] == 0 -> tick[1] = THIRD;
		if
		:: !waits[1] && !(away && refuses) -> waits[1] = true; asking = 0
		:: else
		fi }
	:: d_step { waits[1] && !away -> /* contact.renewed */
		printf("the judge has its lease\n");
		waits[1] = false; gap = asked; asked = asking; asking = 0;
#ifndef GAP_UNNOTICED
		if
		:: gap > HOLDS -> since = 0
		:: else
		fi;
#endif
		gap = 0 }
	od
}

/* contact.deaf */
#ifdef LATE_JUDGE_HEARS
#define HEARS (since >= LEASE)
#elif defined(NEW_CONTACT_HEARS)
#define HEARS (asked <= HOLDS)
#else
#define HEARS (asked <= HOLDS && since >= LEASE)
#endif

/* takeovers.ownerGone */
proctype judge() {
	atomic { !away && !DUE && left == 0 && HEARS -> printf("the owner has been silent for a lease\n") }
	assert(false) /* only the store was silent */
}

init {
	atomic { /* the owner has renewed its lease at any time within the last third of one */
		select(left : THIRD + THIRD .. LEASE);
		tick[0] = left - THIRD - THIRD;
		run time(); run outages(); run renewals(); run judge()
	}
}
