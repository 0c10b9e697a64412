/* SPDX-License-Identifier: MIT */
/*
 * A model of module/slots.c and of those who call it, for Spin.
 *
 * What slots.c does is sequential: its callers hold the arena's lock.  What can
 * go wrong lies between two calls: a reader dies or is thrown out, the writer
 * detaches, a slot's memory is being built or freed.  The model has the state
 * machine's transitions, each under the name of its function, and lets its
 * processes run them in every order:
 *
 *	writer		the writer's thread that writes: acquire, publish, abort
 *	helper		its other threads, and the kernel's reclaim: trim,
 *			populate, evict, close a seat, detach, a stray abort,
 *			retract of any publication
 *	reader		two of them: attach, next, borrow, release, detach, die
 *	idle		the sweep for dead owners, and the trim of an orphan
 *
 * One atomic step is what runs under one hold of the lock.  The file names in
 * the comments are the module's; the embedded engine has the same steps but for
 * the sweep, since it is told of each death.
 *
 * What is simpler than the code, so that there are few states, either allows
 * more runs than there are or is no property's concern:
 *   - There are two slots, two readers that come again when they have left, and
 *     as many seats.
 *   - A tensor has one size, so capacity is whether a slot has memory.
 *   - acquire takes any free slot (fits_better() is a matter of memory), next
 *     any unseen one (tests/unit/slots_walk.c looks after the order).
 *   - A ticket of what is published now can come to a reader at any time.  Of
 *     older ones somebody keeps one, any one of slot 0, and any reader may try
 *     it: slots are alike, and tickets do not depend on each other.
 *   - Generations are only compared for equality, and 64 bits do not wrap.  So
 *     a ticket counts by how much its slot's generation has grown since, up to
 *     2, and no run has an end.  The same goes for reader ids.
 *   - Error numbers are not told apart, so there is no ta_slot.addressed; a
 *     call that fails changes nothing, and is not made.
 *   - A reader owns its file from ATTACH on, as ta_attach() sees to.
 *   - Of page faults there is only what matters for stop, revoke and end.
 *
 * Ghosts are variables that no transition asks: they say what is true,
 * whatever the masks and generations of the code say.
 *
 * -DBREAK_x makes one mistake in the code modelled.  tests/model/check wants
 * each of them found; it also says which parts of the model make which run.
 */

#define SLOTS 2
#define READERS 2
#define SEATS 2 /* TENSORARENA_MAX_READERS */

/* Parts that can be left out, for fewer states: */
#ifndef MEMORY
#define MEMORY 1 /* else slots have theirs from the start and keep it */
#endif
#ifndef KEPT
#define KEPT 1 /* else nobody keeps a ticket */
#endif
#ifndef SLOW_READERS
#define SLOW_READERS 2 /* whose commands may take more than one step */
#endif

/* On a seat, instead of a reader: */
#define NOBODY READERS
#define DEAD (READERS + 1)

#define BIT(n) (1 << (n))
#define ALL_SEATS (BIT(SEATS) - 1)

/* enum ta_slot_state */
#define FREE 0
#define WRITING 1
#define PUBLISHED 2

/* A slot is written with the one, and built ahead or trimmed with the other. */
#define TENSOR 1
#define BEYOND_MEMORY 2

/*
 * struct ta_slot.  Ghosts:
 * owed: who may count on the publication: bit r for reader r, bit
 *	READERS + seat for whoever will claim that seat
 * builder: somebody is changing the slot's memory
 */
typedef slot_t {
	unsigned state : 2;
	unsigned nbytes : 2;
	unsigned capacity : 1;
	unsigned pending : 2;
	unsigned unseen : 2;
	unsigned owed : 4;
	unsigned builder : 1
};

/*
 * A slot and a generation that somebody was told.
 * age: by how much the slot's generation has grown since, 2 for more
 */
typedef ticket_t {
	unsigned have : 1;
	unsigned slot : 1;
	unsigned age : 2
};

/* struct ta_slots */
slot_t slot[SLOTS];
unsigned open : 2;
unsigned claimed : 2;
byte reader_id[SEATS];	/* the seat's number is understood */
bit writer_gone;

/* Roles, as role.c and idle.c keep them */
byte role_of[SEATS] = NOBODY;	/* whose role is on the seat */
bit role_stopped[SEATS];	/* and may not act any more */
bit writer_stopped;
bit writer_dead;		/* the owner's address space is gone */
bit armed;			/* the idle work is queued */

/* The processes' own */
ticket_t kept;			/* a ticket that somebody kept */
ticket_t told[READERS];		/* what a reader is just being told */
bit mapped[READERS];		/* whether it can look at the slots */
ticket_t held;			/* what the writer acquired */
bit helper_inside;		/* a thread of the writer is in a command */
byte evicting;			/* the id that evict_reader() was given */

#define nr_free ((slot[0].state == FREE) + (slot[1].state == FREE))
#define is_being_built(s) (slot[s].capacity < slot[s].nbytes)
#define writer_may_act (!writer_stopped && !writer_dead)
#define unclaimed (open & ~claimed)

inline forget(t)
{
	t.have = 0;
	t.slot = 0;
	t.age = 0
}

/* ---- slots.c: slots ---- */

inline make_free(s)
{
	assert(!slot[s].owed);		/* no reuse while pending and alive */
	assert(!slot[s].builder);	/* nor while its memory changes */
	slot[s].state = FREE;
	slot[s].nbytes = 0;
	slot[s].pending = 0;
	slot[s].unseen = 0
}

inline drop_pending(s, seats)
{
	if
	:: slot[s].pending & (seats) ->
		slot[s].pending = slot[s].pending & ~(seats);
		slot[s].unseen = slot[s].unseen & ~(seats);
		if
		:: !slot[s].pending -> make_free(s)
		:: else
		fi
	:: else
	fi
}

#ifdef BREAK_DEATH_KEEPS_PENDING
#define drop_closed(s, seats) skip
#else
#define drop_closed(s, seats) drop_pending(s, seats)
#endif

inline close_seats(seats)
{
	i = 0;
	do
	:: i < SLOTS ->
		drop_closed(i, seats);
		i++
	:: else -> break
	od;
	i = 0;
	open = open & ~(seats);
	claimed = claimed & ~(seats)
}

#define grow_older(t, s) \
	t.age = (t.have && t.slot == s && t.age < 2 -> t.age + 1 : t.age)

/* Whether slots.c finds the generations equal.  Ghosts ask for age itself. */
#if defined(BREAK_ANY_GENERATION) || defined(BREAK_GENERATION_STAYS)
#define same_generation(t) true
#elif defined(BREAK_GENERATION_WRAPS)
#define same_generation(t) (t.age % 2 == 0)
#else
#define same_generation(t) (t.age == 0)
#endif

inline start_writing(s, bytes)
{
	assert(!slot[s].owed);		/* no reuse while pending and alive */
	assert(!slot[s].builder);
	slot[s].state = WRITING;
	slot[s].nbytes = bytes;
	/* slot->generation++ */
	grow_older(kept, s);
	grow_older(told[0], s);
	grow_older(told[1], s);
	grow_older(held, s)
}

#ifdef BREAK_TRIM_TAKES_PUBLISHED
#define can_take(s) (slot[s].state != WRITING)
#else
#define can_take(s) (slot[s].state == FREE)
#endif

inline ta_slots_take(s)
{
	start_writing(s, BEYOND_MEMORY);
	slot[s].builder = 1
}

inline ta_slots_untake(s)
{
	slot[s].builder = 0;
	make_free(s)
}

/* ta_slots_check_writing(), but for the generation */
#ifdef BREAK_UNBUILT_CAN_BE_ABORTED
#define is_handed_out(s) (slot[s].state == WRITING)
#else
#define is_handed_out(s) (slot[s].state == WRITING && !is_being_built(s))
#endif

#ifdef BREAK_PUBLISH_TO_CLOSED
#define addressable ALL_SEATS
#else
#define addressable open
#endif

/* Its mask is in m. */
inline ta_slots_publish(s)
{
	m = m & addressable;
	if
	:: m ->
		slot[s].state = PUBLISHED;
		slot[s].pending = m;
		slot[s].unseen = m;
		/* Ghost: who those are. */
		i = 0;
		do
		:: i < SEATS ->
			if
			:: m & unclaimed & BIT(i) ->
				slot[s].owed = slot[s].owed | BIT(READERS + i)
			:: m & claimed & BIT(i) && role_of[i] < READERS &&
			   !role_stopped[i] ->
				slot[s].owed = slot[s].owed | BIT(role_of[i])
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	:: else ->
		make_free(s);
		slots_freed()
	fi;
	m = 0
}

/* check_held(), but for the generation */
#define is_pending(seat, s) \
	(slot[s].state == PUBLISHED && (slot[s].pending & BIT(seat)))

/* ---- slots.c with role.c and idle.c: seats ---- */

/* Ghost: these may count on nothing any more. */
inline owe_nothing(whom)
{
	i = 0;
	do
	:: i < SLOTS ->
		slot[i].owed = slot[i].owed & ~(whom);
		i++
	:: else -> break
	od;
	i = 0
}

/* Ghost: a publication is called back from those who have not seen it. */
inline disown(s)
{
	i = 0;
	do
	:: i < SEATS ->
		if
		:: slot[s].unseen & BIT(i) && role_of[i] < READERS ->
			slot[s].owed = slot[s].owed & ~BIT(role_of[i])
		:: slot[s].unseen & BIT(i) && role_of[i] == NOBODY ->
			slot[s].owed = slot[s].owed & ~BIT(READERS + i)
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

/* ta_slots_retract() */
#ifdef BREAK_RETRACT_FROM_ALL
#define retractable(s) slot[s].pending
#else
#define retractable(s) slot[s].unseen
#endif

/* ta_arena_slots_freed(): wakes the writer, or the idle work for an orphan. */
inline slots_freed()
{
	if
	:: writer_gone -> armed = 1
	:: else
	fi
}

/* ta_arena_idle_later() */
inline idle_later()
{
	if
	:: nr_free < SLOTS -> armed = 1
	:: else
	fi
}

/* stop() of a reader */
inline stop_reader(seat)
{
	if
	:: role_of[seat] < READERS -> owe_nothing(BIT(role_of[seat]))
	:: else
	fi;
	role_stopped[seat] = 1
}

/* ta_role_end() of a reader, with ta_slots_leave() */
inline end_reader(seat)
{
	stop_reader(seat);
	/* Who has left must not look on as his slots fill for others. */
	assert(role_of[seat] >= READERS || !mapped[role_of[seat]]);
	role_of[seat] = NOBODY;
	role_stopped[seat] = 0;
	reader_id[seat] = 0;
	close_seats(BIT(seat));
	slots_freed()
}

#ifdef BREAK_WRITER_GONE_FREES_BUILDING
#define is_builders(s) false
#else
#define is_builders(s) is_being_built(s)
#endif

/* ta_role_end() of the writer, with ta_slots_writer_gone() */
inline end_writer()
{
	writer_stopped = 1;
	writer_dead = 0;	/* does not matter any more */
	if
	:: !writer_gone ->
		writer_gone = 1;
		i = 0;
		do
		:: i < SLOTS ->
			if
			:: slot[i].state == WRITING && !is_builders(i) ->
				make_free(i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		/* Ghost: nobody will claim these. */
		owe_nothing(unclaimed << READERS);
		close_seats(unclaimed);
		slots_freed()
	:: else
	fi
}

/* ta_arena_sweep() */
inline sweep()
{
	do
	:: n < SEATS && role_of[n] == DEAD -> end_reader(n)
	:: n < SEATS && role_of[n] != DEAD -> n++
	:: else -> break
	od;
	n = 0;
	if
	:: writer_dead -> end_writer()
	:: else
	fi
}

/* ---- the writer: writer.c ---- */

proctype writer()
{
	byte i, n, s, m;
	bit build;

end:	do
	/* writer_acquire(), acquire_slot(), ta_slots_acquire() */
	:: atomic { writer_may_act && !held.have ->
		if
		:: !nr_free -> sweep()
		:: else
		fi;
		if
		:: slot[0].state == FREE -> s = 0
		:: slot[1].state == FREE -> s = 1
		:: else -> s = SLOTS
		fi;
		if
		:: s < SLOTS ->
			start_writing(s, TENSOR);
			build = is_being_built(s);
			slot[s].builder = build;
			held.have = 1;
			held.slot = s;
			idle_later()
		:: else
		fi;
		s = 0
	   }
	   if
	   /* build_acquired() */
	   :: atomic { build ->
		build = 0;
		s = held.slot;
		slot[s].builder = 0;
		if
		:: true ->	/* ta_slots_built() */
			slot[s].capacity = 1;
			if
#ifndef BREAK_GROWN_SLOT_IS_KEPT
			:: writer_gone ->
				make_free(s);
				slots_freed();
				forget(held)
#endif
			:: else
			fi
		:: true ->	/* ta_slots_no_memory() */
			ta_slots_untake(s);
			slots_freed();
			forget(held)
		fi;
		s = 0
	      }
	   :: else
	   fi;
	   if
	   :: true
	   /* writer_acquire() again: the caller could not be told */
	   :: atomic { held.have ->
		s = held.slot;
		if
		:: is_handed_out(s) && same_generation(held) ->
			assert(!held.age);
			make_free(s);
			slots_freed()
		:: else
		fi;
		forget(held);
		s = 0
	      }
	   fi
	/* writer_publish(), publish_locked(): to all, or to those named */
	:: atomic { writer_may_act && held.have ->
		sweep();
		s = held.slot;
		if
		:: is_handed_out(s) && same_generation(held) ->
			assert(!held.age);	/* no stale validation */
			if
			:: m = ALL_SEATS
			:: claimed & BIT(0) -> m = BIT(0)
			:: claimed & BIT(1) -> m = BIT(1)
			fi;
			ta_slots_publish(s)
		:: else
		fi;
		forget(held);
		s = 0
	   }
	/* writer_abort() */
	:: atomic { writer_may_act && held.have ->
		s = held.slot;
		if
		:: is_handed_out(s) && same_generation(held) ->
			assert(!held.age);
			make_free(s)
		:: else
		fi;
		forget(held);
		s = 0
	   }
	/* Its commands are refused. */
	:: atomic { writer_stopped && held.have -> forget(held) }
	/* It dies, with no thread in a command. */
	:: atomic { writer_may_act && !helper_inside ->
		writer_dead = 1;
		forget(held);
		if
		:: end_writer()	/* ta_vma_close(), ta_role_flush() */
		:: true		/* a child keeps the file */
		fi
	   }
	od
}

/* ---- the writer's other threads, and reclaim: writer_memory.c, trim.c ---- */

proctype helper()
{
	byte i, s;

end:	do
#if MEMORY
	/* trim_slot(), of TRIM and of the shrinker */
	:: atomic {
		if
		:: can_take(0) && slot[0].capacity -> s = 0
		:: can_take(1) && slot[1].capacity -> s = 1
		fi;
		ta_slots_take(s)
	   }
	   atomic {
		if
		:: slot[s].capacity = 0
		:: true		/* pinned */
		fi;
		ta_slots_untake(s);
		s = 0
	   }
	/* populate_slot() */
	:: atomic {
		if
		:: writer_may_act && can_take(0) && !slot[0].capacity -> s = 0
		:: writer_may_act && can_take(1) && !slot[1].capacity -> s = 1
		fi;
		ta_slots_take(s);
		helper_inside = 1
	   }
	   atomic {
		if
		:: slot[s].capacity = 1
		:: true		/* no memory */
		fi;
		ta_slots_untake(s);
		slots_freed();
		helper_inside = 0;
		s = 0
	   }
#endif
	/* writer_abort() of a thread that guesses the generation */
	:: atomic {
		if
		:: writer_may_act && is_handed_out(0) -> s = 0
		:: writer_may_act && is_handed_out(1) -> s = 1
		fi;
		make_free(s);
		s = 0
	   }
	/* writer_retract(), with ta_slots_retract() */
	:: atomic {
		if
		:: writer_may_act && slot[0].unseen -> s = 0
		:: writer_may_act && slot[1].unseen -> s = 1
		fi;
		/* Ghost: to whoever has not seen it, it is not owed any more. */
		disown(s);
		drop_pending(s, retractable(s));
		slots_freed();
		s = 0
	   }
	/* close_unclaimed(), with ta_slots_close_unclaimed() */
	:: atomic {
		if
		:: writer_may_act && unclaimed & BIT(0) -> s = 0
		:: writer_may_act && unclaimed & BIT(1) -> s = 1
		fi;
		owe_nothing(BIT(READERS + s));
		close_seats(BIT(s));
		s = 0
	   }
	/* evict_reader(): stop, revoke, end */
	:: atomic {
		if
		:: writer_may_act && claimed & BIT(0) -> s = 0
		:: writer_may_act && claimed & BIT(1) -> s = 1
		fi;
		helper_inside = 1;
		evicting = reader_id[s];
#ifdef BREAK_EVICT_ENDS_FIRST
		end_reader(s)
#elif !defined(BREAK_EVICT_DOES_NOT_STOP)
		stop_reader(s)
#endif
	   }
	   /* revoke(), of the inode that was on the seat */
	   atomic {
		if
		:: reader_id[s] == evicting && role_of[s] < READERS ->
			mapped[role_of[s]] = 0
		:: else
		fi
	   }
	   atomic {
		if
#ifdef BREAK_EVICT_ENDS_ANYBODY
		:: claimed & BIT(s) ->
#else
		:: reader_id[s] == evicting ->
#endif
			end_reader(s)
		:: else
		fi;
		helper_inside = 0;
		evicting = 0;
		/* Nobody remembers another id of this seat. */
		reader_id[s] = reader_id[s] != 0;
		s = 0
	   }
	/* ta_role_detach() of the writer */
	:: atomic { writer_may_act ->
		writer_stopped = 1;
		helper_inside = 1
	   }
	   atomic {
		end_writer();
		helper_inside = 0
	   }
	od
}

/* ---- a reader: reader.c ---- */

#define is_seated(r) (role_of[0] == r || role_of[1] == r)
#define seat_of(r) (role_of[0] == r -> 0 : 1)
/* What ta_role_lock() lets through. */
#define may_act(r) (is_seated(r) && !role_stopped[seat_of(r)])
#define is_owed(r, s) (slot[s].owed & BIT(r))

/* describe() */
inline tell(t, s)
{
	t.have = 1;
	t.slot = s;
	t.age = 0
}

/* ta_slots_attach(): an id that nobody is being thrown out by. */
#define new_reader_id (evicting == 1 -> 2 : 1)

/* Ghost: what waited for whoever would sit here waits for r. */
inline owe_instead(seat, r)
{
	i = 0;
	do
	:: i < SLOTS ->
		if
		:: slot[i].owed & BIT(READERS + seat) ->
			slot[i].owed = slot[i].owed ^ BIT(READERS + seat) ^
				       BIT(r)
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

#ifdef BREAK_UNSEE_UNCHECKED
#define still_holds(seat, t) (slot[t.slot].state == PUBLISHED)
#else
#define still_holds(seat, t) (is_pending(seat, t.slot) && same_generation(t))
#endif

#ifdef BREAK_RELEASE_FOR_ALL
#define releases(seat) ALL_SEATS
#else
#define releases(seat) BIT(seat)
#endif

proctype reader(byte me)
{
	byte i, n, s, seat;

end:	do
	/* ta_reader_open(), with ta_slots_attach() */
	:: atomic { !is_seated(me) && !writer_gone ->
		sweep();
		if
		:: !writer_gone && (unclaimed || open != ALL_SEATS) ->
			s = (unclaimed -> unclaimed : ~open & ALL_SEATS);
			seat = (s & BIT(0) -> 0 : 1);
			reader_id[seat] = new_reader_id;
			open = open | BIT(seat);
			claimed = claimed | BIT(seat);
			role_of[seat] = me;
			mapped[me] = 1;
			owe_instead(seat, me)
		:: else
		fi;
		s = 0;
		seat = 0
	   }
	/* reader_next(), with ta_slots_next() */
	:: atomic {
		if
		:: may_act(me) && slot[0].unseen & BIT(seat_of(me)) -> s = 0
		:: may_act(me) && slot[1].unseen & BIT(seat_of(me)) -> s = 1
		fi;
		assert(is_owed(me, s));
		seat = seat_of(me);
		slot[s].unseen = slot[s].unseen & ~BIT(seat);
		if
		:: me < SLOW_READERS -> tell(told[me], s)
		:: seat = 0
		fi;
		s = 0
	   }
	   if
	   /* ta_slots_unsee(): the caller could not be told. */
	   :: atomic { told[me].have ->
		if
		:: still_holds(seat, told[me]) ->
			assert(!told[me].age);	/* no stale validation */
			s = told[me].slot;
			slot[s].unseen = slot[s].unseen | BIT(seat);
			s = 0
		:: else
		fi;
		forget(told[me]);
		seat = 0
	      }
	   :: else
	   fi
	/* Somebody keeps the ticket of a publication. */
	:: atomic { KEPT && slot[0].state == PUBLISHED -> tell(kept, 0) }
	/* reader_borrow(), with ta_slots_borrow() */
	:: atomic {
		if
		:: may_act(me) && is_pending(seat_of(me), 0) -> s = 0
		:: may_act(me) && is_pending(seat_of(me), 1) -> s = 1
		:: may_act(me) && kept.have &&
		   still_holds(seat_of(me), kept) ->
			assert(!kept.age);	/* no stale validation */
			s = kept.slot
		fi;
		assert(is_owed(me, s));
		slot[s].unseen = slot[s].unseen & ~BIT(seat_of(me));
		s = 0
	   }
	/* reader_release(), with ta_slots_release() */
	:: atomic {
		if
		:: may_act(me) && is_pending(seat_of(me), 0) -> s = 0
		:: may_act(me) && is_pending(seat_of(me), 1) -> s = 1
		:: may_act(me) && kept.have &&
		   still_holds(seat_of(me), kept) ->
			assert(!kept.age);	/* no stale validation */
			s = kept.slot
		fi;
		slot[s].owed = slot[s].owed & ~BIT(me);
		drop_pending(s, releases(seat_of(me)));
		slots_freed();
		s = 0
	   }
	/* ta_vma_fault() */
	:: atomic { may_act(me) && !mapped[me] -> mapped[me] = 1 }
	/* ta_role_detach(): stop, revoke, end */
	:: atomic { me < SLOW_READERS && may_act(me) ->
		seat = seat_of(me);
		stop_reader(seat);
		seat = 0
	   }
	   mapped[me] = 0;
	   atomic {
		if
		:: is_seated(me) ->
			seat = seat_of(me);
			end_reader(seat);
			seat = 0
		:: else		/* EVICT was faster */
		fi
	   }
	/* It dies, or closes its file, and the next process takes its place. */
	:: atomic { is_seated(me) ->
		mapped[me] = 0;
		owe_nothing(BIT(me));
		seat = seat_of(me);
		role_of[seat] = DEAD;
		if
		/* ta_vma_close(), ta_role_flush(), ta_role_release() */
		:: end_reader(seat)
		/* a child, or a message under way, keeps the file */
		:: true
		fi;
		seat = 0
	   }
	od
}

/* ---- idle.c ---- */

proctype idle()
{
	byte i, n, s;
	bit orphaned;

end:	do
	/* ta_arena_idle_work() */
	:: atomic { armed ->
		armed = 0;
#ifndef BREAK_NO_SWEEP
		sweep();
#endif
#ifndef BREAK_SWEEP_ONCE
		idle_later();
#endif
		orphaned = writer_gone
	   }
#if MEMORY
	   /* ta_arena_trim(): each slot that is free, and not pinned any more */
	   do
	   :: atomic { orphaned && s < SLOTS && can_take(s) &&
		       slot[s].capacity ->
		ta_slots_take(s)
	      }
	      atomic {
		slot[s].capacity = 0;
		ta_slots_untake(s);
		s++
	      }
	   :: orphaned && s < SLOTS && !(can_take(s) && slot[s].capacity) ->
		s++
	   :: else -> break
	   od;
	   atomic {
#ifndef BREAK_ORPHAN_IS_TRIMMED_ONCE
		if
		:: orphaned && (slot[0].capacity || slot[1].capacity) ->
			armed = 1
		:: else
		fi;
#endif
		orphaned = 0;
		s = 0
	   }
#else
	   orphaned = 0
#endif
	od
}

/* ---- what must hold ---- */

/* Nobody alive counts on it and nobody was given it. */
#define lost(s) \
	((slot[s].state == PUBLISHED && !slot[s].owed) || \
	 (slot[s].state == WRITING && !slot[s].builder && \
	  (writer_dead || writer_gone)))

/* An arena without a writer has no use for it. */
#define unused(s) (writer_gone && slot[s].state == FREE && slot[s].capacity)

/* Every slot is free in the end, when its readers have died or released it. */
ltl freed { []<> !lost(0) && []<> !lost(1) }
/* Its memory as well, when the writer is gone. */
ltl given_back { []<> !unused(0) && []<> !unused(1) }

/* Whatever happens, the masks fit each other and the state. */
#define fits(s) \
	(!(slot[s].unseen & ~slot[s].pending) && \
	 !(slot[s].pending & ~open) && \
	 (slot[s].state == PUBLISHED) == (slot[s].pending != 0))

proctype watch()
{
end:	atomic { !fits(0) || !fits(1) || claimed & ~open ->
		assert(fits(0) && fits(1) && !(claimed & ~open))
	}
}

init {
	atomic {
		/* CREATE's seats; the helper can close them. */
		open = ALL_SEATS;
#if !MEMORY
		slot[0].capacity = 1;
		slot[1].capacity = 1;
#endif
		run writer();
		run helper();
		run reader(0);
		run reader(1);
		run idle();
		run watch()
	}
}
