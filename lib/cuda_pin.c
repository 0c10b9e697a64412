// SPDX-License-Identifier: MIT
/*
 * Registering slots, so that the GPU's copy engines reach them directly.
 *
 * A slot's built part is one registration, because a copy may not straddle two.
 * How much is built nobody says; it is found out by asking for the pages, which
 * also makes the registration itself quick.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"
#include "engine.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint8_t *address(const struct ta_cuda *cuda, uint32_t slot)
{
	return cuda->base + slot * cuda->stride;
}

/* Whether the slot has memory in this range; its pages are resident then. */
static bool has_memory(uint8_t *addr, uint64_t bytes)
{
	return !madvise(addr, bytes, MADV_POPULATE_READ);
}

/* Bytes from the slot's start that are built; at least @nbytes are. */
static uint64_t built(const struct ta_cuda *cuda, uint32_t slot,
		      uint64_t nbytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t size = ta_slot_capacity(nbytes, cuda->stride);
	uint8_t *addr = address(cuda, slot);
	uint64_t next;

	if (!has_memory(addr, size))
		return (nbytes + page - 1) / page * page;
	while (size < cuda->stride) {
		next = ta_slot_capacity(size + 1, cuda->stride);
		if (!has_memory(addr + size, next - size))
			break;
		size = next;
	}
	return size;
}

/* Whether devices here can register memory they may only read. */
static bool read_only_works(struct ta_cuda *cuda)
{
	int device, works = 0;
	int err;

	err = cuda->api.ctx_device(&device);
	if (!err)
		err = cuda->api.attribute(&works, TA_CU_READ_ONLY_SUPPORTED,
					  device);
	if (err) {
		ta_cuda_failed(cuda, "cuDeviceGetAttribute", err);
		return false;
	}
	if (!works)
		snprintf(cuda->stats.error_text, sizeof(cuda->stats.error_text),
			 "this device cannot register read-only memory");
	return works;
}

static void do_register(struct ta_cuda *cuda, uint32_t slot, uint64_t bytes,
			const struct ta_cuda_scope *scope)
{
	struct ta_cuda_pin *pin = &cuda->pin[slot];
	unsigned int flags = TA_CU_REGISTER_PORTABLE;
	uint64_t start = now_ns();
	int err;

	pin->bytes = bytes;
	pin->ctx = scope->ctx;
	pin->ctx_id = scope->id;
	pin->state = TA_PIN_FAILED;
	if (cuda->read_only) {
		if (!read_only_works(cuda)) {
			cuda->stats.pin_failures++;
			return;
		}
		flags |= TA_CU_REGISTER_READ_ONLY;
	}
	err = cuda->api.host_register(address(cuda, slot), bytes, flags);
	pin->ns = now_ns() - start;
	if (!err) {
		pin->state = TA_PINNED;
		cuda->stats.pins++;
		cuda->stats.pin_ns += pin->ns;
		cuda->stats.pinned_slots++;
		cuda->stats.pinned_bytes += bytes;
	} else if (err == TA_CU_ALREADY_REGISTERED) {
		/* By somebody else, whose it is to unregister. */
		pin->state = TA_PINNED_ELSEWHERE;
	} else {
		ta_cuda_failed(cuda, "cuMemHostRegister", err);
		cuda->stats.pin_failures++;
	}
}

/* What was tried for as many bytes would fail, or succeed, again. */
static bool settled(struct ta_cuda *cuda, uint32_t slot, uint64_t nbytes)
{
	struct ta_cuda_pin *pin = &cuda->pin[slot];

	pin->used = ++cuda->clock;
	return pin->state != TA_UNPINNED && pin->bytes >= nbytes;
}

void ta_cuda_pin(struct ta_cuda *cuda, uint32_t slot, uint64_t nbytes,
		 ta_cuda_idle *idle, const void *owner)
{
	uint64_t budget = cuda->stats.pin_budget;
	struct ta_cuda_scope scope;
	uint64_t bytes;

	if (settled(cuda, slot, nbytes) || !nbytes || !budget)
		return;
	if (ta_cuda_enter(&cuda->api, NULL, &scope))
		return;
	ta_cuda_relax(&cuda->api, &scope);
	ta_cuda_unpin(cuda, slot);
	bytes = built(cuda, slot, nbytes);
	if (bytes <= budget)
		ta_cuda_unpin_idle(cuda, budget - bytes, idle, owner);
	if (bytes <= budget && cuda->stats.pinned_bytes <= budget - bytes)
		do_register(cuda, slot, bytes, &scope);
	else
		cuda->stats.over_budget++;
	ta_cuda_leave(&cuda->api, &scope);
}

void ta_cuda_pin_for(struct ta_cuda *cuda, struct ta_cuda_work *work,
		     uint32_t slot, uint64_t nbytes, ta_cuda_idle *idle,
		     const void *owner)
{
	struct ta_cuda_pin *pin = &cuda->pin[slot];

	if (work->failed)
		return;
	/* It went with the context that had the same handle. */
	if (pin->ctx == work->scope.ctx && pin->ctx_id != work->scope.id)
		ta_cuda_forget(cuda, pin->ctx, pin->ctx_id);
	ta_cuda_pin(cuda, slot, nbytes, idle, owner);
	if (pin->state != TA_PINNED)
		ta_cuda_relax(&cuda->api, &work->scope);
}

static bool none_is_idle(const void *owner, uint32_t slot)
{
	(void)owner;
	(void)slot;
	return false;
}

uint32_t ta_cuda_pin_all(struct ta_cuda *cuda, ta_cuda_idle *idle,
			 const void *owner)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint32_t pinned = 0;
	uint32_t i;

	/*
	 * One that is in use is pinned already or cannot be now.  All that are
	 * pinned have as good a claim as the next, so none has to make room.
	 */
	for (i = 0; i < cuda->slots; i++)
		if (idle(owner, i) && has_memory(address(cuda, i), page))
			ta_cuda_pin(cuda, i, built(cuda, i, page), none_is_idle,
				    NULL);
	for (i = 0; i < cuda->slots; i++)
		pinned += cuda->pin[i].state == TA_PINNED ||
			  cuda->pin[i].state == TA_PINNED_ELSEWHERE;
	return pinned;
}

static void undo(struct ta_cuda *cuda, uint32_t slot)
{
	const struct ta_cuda_pin *pin = &cuda->pin[slot];
	struct ta_cuda_scope scope;
	int err;

	err = ta_cuda_enter_again(&cuda->api, pin->ctx, pin->ctx_id, &scope);
	/* It went with its context. */
	if (err == -ESHUTDOWN)
		return;
	/* It holds in all of them. */
	if (err && ta_cuda_enter(&cuda->api, NULL, &scope)) {
		ta_cuda_failed(cuda, "cuCtxPushCurrent", scope.result);
		return;
	}
	ta_cuda_relax(&cuda->api, &scope);
	err = cuda->api.host_unregister(address(cuda, slot));
	if (err && err != TA_CU_NOT_REGISTERED && !ta_cuda_is_gone(err))
		ta_cuda_failed(cuda, "cuMemHostUnregister", err);
	ta_cuda_leave(&cuda->api, &scope);
}

void ta_cuda_unpin(struct ta_cuda *cuda, uint32_t slot)
{
	struct ta_cuda_pin *pin = &cuda->pin[slot];

	if (pin->state == TA_PINNED) {
		cuda->stats.unpins++;
		cuda->stats.pinned_slots--;
		cuda->stats.pinned_bytes -= pin->bytes;
		undo(cuda, slot);
	}
	pin->state = TA_UNPINNED;
	pin->bytes = 0;
	pin->ns = 0;
}

void ta_cuda_unpin_lost(struct ta_cuda *cuda, const void *ctx, uint64_t ctx_id)
{
	uint32_t i;

	for (i = 0; i < cuda->slots; i++)
		if (cuda->pin[i].ctx == ctx && cuda->pin[i].ctx_id == ctx_id)
			ta_cuda_unpin(cuda, i);
}

void ta_cuda_leave_pinned(struct ta_cuda *cuda, uint32_t slot)
{
	if (cuda->pin[slot].state == TA_PINNED)
		cuda->pin[slot].state = TA_PINNED_ELSEWHERE;
}

/* The idle slot that was pinned or asked for the longest ago. */
static int oldest_idle(const struct ta_cuda *cuda, ta_cuda_idle *idle,
		       const void *owner)
{
	int oldest = -1;
	uint32_t i;

	for (i = 0; i < cuda->slots; i++) {
		if (cuda->pin[i].state != TA_PINNED || !idle(owner, i))
			continue;
		if (oldest < 0 || cuda->pin[i].used < cuda->pin[oldest].used)
			oldest = (int)i;
	}
	return oldest;
}

void ta_cuda_unpin_idle(struct ta_cuda *cuda, uint64_t keep, ta_cuda_idle *idle,
			const void *owner)
{
	int slot;

	while (cuda->stats.pinned_bytes > keep) {
		slot = oldest_idle(cuda, idle, owner);
		if (slot < 0)
			return;
		ta_cuda_unpin(cuda, (uint32_t)slot);
	}
}
