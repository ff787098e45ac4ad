/* Who is there: redisstore/judge.go. A process that lives is never taken for dead by its
 * connections. They break one by one; both at once, and then it is back within the time that it
 * says it needs; or all of all processes, when Redis starts again, and then it may take any time.
 * A tick is the time that it needs. It may also be one that shows no connections.
 */
#define PRESENCES 2

bool shows = true, alive = true;
byte shown = PRESENCES; /* the connections of the watched process */
byte own = PRESENCES;   /* those of the judge */
bool back = false;      /* the process must be back before the next tick ends */
byte ticks = 0;         /* since then */
bool broke = false;     /* that has happened */
bool restarted = false, slow = false, noticed = true;

/* The judge: other.counted is in this contact, other.missing, and other.gone. */
bool counted = false, missing = false, gone = false;
byte since = 0;

/* The look: looking.contact is still the contact, its beginning, and what it has counted. */
bool same = false, apart = false;
byte there = 0, me = 0;

#define BROKEN counted = false; same = false

proctype time() {
	do
	:: d_step { (missing && since < 2) || (back && ticks == 0) ->
		if
		:: back && ticks == 1 -> back = false; ticks = 0; shown = PRESENCES; printf("the process is back in time\n")
		:: back && ticks == 0 -> ticks = 1
		:: else
		fi;
		since = (missing && since < 2 -> since + 1 : since);
		printf("time passes\n") }
	:: d_step { back -> back = false; ticks = 0; shown = PRESENCES; printf("the process is back in time\n") }
	od
}

proctype faults() {
	do
	:: d_step { shown == PRESENCES -> shown--; printf("a connection of the process breaks\n") }
	:: d_step { alive && shown == 1 -> shown++; printf("it is back\n") }
	:: d_step { shown > 0 && !broke && alive -> broke = true; shown = 0; back = true;
		printf("all its connections break\n") }
	:: d_step { alive && shows -> alive = false; shown = 0; back = false; ticks = 0; printf("the process dies\n") }
	:: d_step { own == PRESENCES -> own--; BROKEN; printf("a connection of the judge breaks\n") }
	:: d_step { own == 1 && noticed -> own++; printf("it is back\n") }
	:: d_step { !restarted -> restarted = true; slow = alive && shows; back = false; ticks = 0;
		shown = 0; own = 0; noticed = false; printf("Redis starts again\n") }
	:: d_step { own == 0 && !noticed -> noticed = true; BROKEN; printf("the judge notices that\n") }
	:: d_step { own == 0 && noticed -> own = PRESENCES; printf("the judge is back\n") }
	:: d_step { slow && alive -> slow = false; shown = PRESENCES; printf("the process is back\n") }
	od
}

#ifdef OWN_NOT_COUNTED
#define RIGHT same
#elif defined(CONTACT_IGNORED)
#define RIGHT (me >= PRESENCES)
#else
#define RIGHT (me >= PRESENCES && same)
#endif

#if defined(STRANGERS_JUDGED) || defined(CONTACT_IGNORED)
#define JUDGED true
#else
#define JUDGED counted
#endif

#ifdef LOOKS_TOO_CLOSE
#define APART true
#else
#define APART apart
#endif

/* peers.look, judge.see */
proctype judge() {
	do
	:: d_step { same = true; apart = missing && since >= 2; printf("the judge looks\n") }
		d_step { there = shown; me = own; printf("Redis counts %d of the process, and %d of the judge\n", shown, own) }
		d_step {
#ifndef OWN_NOT_COUNTED
			if
			:: me == 0 -> BROKEN
			:: else
			fi;
#endif
			if
			:: there > 0 && RIGHT -> counted = true; missing = false; since = 0; gone = false
			:: !(there > 0 && RIGHT) && (there > 0 || !RIGHT) -> missing = false; since = 0
			:: there == 0 && RIGHT && (gone || !JUDGED)
#ifdef ONE_LOOK
			:: there == 0 && RIGHT && !gone && JUDGED -> gone = true
#else
			:: there == 0 && RIGHT && !gone && JUDGED && !missing -> missing = true; since = 0
			:: there == 0 && RIGHT && !gone && JUDGED && missing && !APART
			:: there == 0 && RIGHT && !gone && JUDGED && missing && APART -> gone = true
#endif
			fi;
			there = 0; me = 0; same = false; apart = false;
			if
			:: gone -> printf("the judge takes the process for dead\n")
			:: else
			fi
		}
#ifdef DEATHS_ARE_FOUND
		assert(!gone) /* what must be reached */
#else
		assert(!(gone && alive)) /* the living are not taken for dead */
#endif
	od
}

init {
	atomic {
		if
		:: true
		:: shows = false; shown = 0; printf("the process shows no connections\n")
		fi;
		run time(); run faults(); run judge()
	}
}
