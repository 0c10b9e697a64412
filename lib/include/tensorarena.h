/* SPDX-License-Identifier: MIT */
/*
 * libtensorarena: large tensors from one engine process to its GPU workers
 * with one memcpy.
 *
 * The engine (the writer) creates an arena, sends its handle string to the
 * workers, and puts tensors into slots.  Each worker (a reader) attaches with
 * the handle and looks at the tensors in place through read-only views.  A
 * slot is free again when every reader it was published to has released it or
 * has died.
 *
 *	writer					reader
 *	ta_create(), ta_handle()	-->	ta_attach()
 *	ta_put() -> ticket		-->	ta_view(ticket), or ta_next()
 *						ta_release()
 *
 * Conventions
 *
 * Functions return 0 or a negative error number; ta_strerror() has a sentence
 * for each.  Sizes are bytes.  Handles are opaque.  Views and loans are not; they
 * are allocated here, read-only to callers, and may grow at their end.  All other
 * structures are the caller's and do not grow under him: with more fields their
 * functions get a new symbol version, and a program keeps the one it was built for.
 *
 * Thread-safety: every function may be called from any thread at any time, but
 * an object must not be used while or after another thread closes, releases,
 * commits or aborts that same object.  There is no global state.
 *
 * Fork: in a forked child every inherited object is dead.  Calls return -EIO;
 * closing functions only close descriptors and free memory.  The mappings are
 * not inherited.  A child attaches for itself.
 *
 * Declines: ta_put() and ta_loan() never block.  They decline with
 *	-EAGAIN		no slot is free
 *	-EMSGSIZE	larger than a slot
 *	-ENOMEM		no memory for the slot
 *	-EDQUOT		a limit was reached
 *	-ENOTCONN	no reader would get it
 * and the caller sends the tensor through its own channel instead.
 */
#ifndef TENSORARENA_H
#define TENSORARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ta_writer;
struct ta_reader;

/* ---- tensors ---- */

#define TA_MAX_NDIM 8
#define TA_MAX_TAG 160

/* Element kinds: DLPack's DLDataTypeCode values. */
enum ta_dtype_code {
	TA_INT = 0,
	TA_UINT = 1,
	TA_FLOAT = 2,
	TA_OPAQUE = 3,
	TA_BFLOAT = 4,
	TA_COMPLEX = 5,
	TA_BOOL = 6,
	TA_FLOAT8_E3M4 = 7,
	TA_FLOAT8_E4M3 = 8,
	TA_FLOAT8_E4M3B11FNUZ = 9,
	TA_FLOAT8_E4M3FN = 10,
	TA_FLOAT8_E4M3FNUZ = 11,
	TA_FLOAT8_E5M2 = 12,
	TA_FLOAT8_E5M2FNUZ = 13,
	TA_FLOAT8_E8M0FNU = 14,
	TA_FLOAT6_E2M3FN = 15,
	TA_FLOAT6_E3M2FN = 16,
	TA_FLOAT4_E2M1FN = 17,
};

/**
 * struct ta_tensor - what the bytes mean
 * @code: enum ta_dtype_code
 * @bits: bits of one lane
 * @lanes: 1 but for vector types
 * @ndim: dimensions, 0 (a scalar) to TA_MAX_NDIM
 * @tag_bytes: bytes of @tag in use
 * @shape: extent of each dimension, elements; row-major and contiguous
 * @tag: the user's own bytes: a request id, a tensor's name, a dict key
 *
 * Elements of less than a byte are packed; the whole is rounded up to bytes.
 */
struct ta_tensor {
	uint8_t code;
	uint8_t bits;
	uint16_t lanes;
	uint32_t ndim;
	uint32_t tag_bytes;
	uint32_t reserved;
	int64_t shape[TA_MAX_NDIM];
	uint8_t tag[TA_MAX_TAG];
};

/*
 * Bytes a contiguous tensor of this type and shape occupies: 0 and *@nbytes,
 * or -EINVAL for a malformed descriptor, -EOVERFLOW for an absurd one.
 */
int ta_tensor_nbytes(const struct ta_tensor *tensor, uint64_t *nbytes);
/* "bf16", "f32", "u8", "f8_e4m3fn"...; writes at most @size bytes with NUL. */
void ta_dtype_name(const struct ta_tensor *tensor, char *buf, size_t size);

/**
 * struct ta_ticket - names one publication; send it to the readers
 *
 * Plain data of 32 bytes, valid on the same node while the arena lives.
 */
struct ta_ticket {
	uint64_t arena;
	uint64_t generation;
	uint64_t nbytes;
	uint32_t slot;
	uint32_t reserved;
};

/* ---- writer ---- */

/*
 * Two engines, one behaviour, except that the embedded one
 *
 *	needs Linux 5.3 or later, no module, no privilege and no shared-memory
 *	mount; -ENOSYS where there are no pidfds
 *	cannot take an evicted reader's mapping away, place slots on a NUMA node
 *	or make them contiguous (-EOPNOTSUPP), or see what is pinned: ta_trim()
 *	is never -EBUSY, and pinned old memory lasts until it is unpinned
 *	gives readers nothing new after the writer's death, not even what was
 *	published before it: -EPIPE.  They keep the views they hold
 *	answers readers from the writer's process, so a stopped (SIGSTOP) writer
 *	stops their calls, too
 *	keeps slots' memory while a child that the writer forked, and that does
 *	not exec, neither exits nor closes its copy
 *	does not see a reader's exec() while a forked child of the reader holds
 *	its descriptors
 */
enum ta_engine_kind {
	TA_ENGINE_AUTO, /* device when /dev/tensorarena opens, else embedded */
	TA_ENGINE_DEVICE, /* the kernel module */
	TA_ENGINE_EMBEDDED, /* a thread in the writer's process */
};

/* Readers may write to the tensors; see docs for what that gives up. */
#define TA_WRITABLE_READERS (1U << 0)
/* Device engine: each slot one physical extent, or decline. */
#define TA_CONTIGUOUS (1U << 1)
/* Device engine: smaller pages rather than a decline. */
#define TA_FALLBACK_SMALL (1U << 2)
/* Device engine: memory from options.node or decline. */
#define TA_NODE_STRICT (1U << 3)
/* Create even when slots * stride exceeds the memory there is now. */
#define TA_NO_MEMORY_CHECK (1U << 8)
/* Embedded engine: readers of any uid that know the handle (else own and root). */
#define TA_ANY_UID (1U << 9)

#define TA_NODE_LOCAL (-1)

/*
 * The node to open for the device engine; TENSORARENA_DEVICE in the environment
 * may name another.
 */
#define TA_DEVICE_PATH "/dev/tensorarena"

/**
 * struct ta_options - how to create an arena
 * @slot_bytes: largest tensor
 * @slots: how many tensors may be in flight, 1 to 256
 * @seats: readers expected, 0 to 64: publications wait for these from the
 *	start; further readers see later publications only
 * @flags: TA_*
 * @engine: enum ta_engine_kind
 * @node: NUMA node, or TA_NODE_LOCAL
 * @copy_threads: how many threads copy a large tensor, the calling one included:
 *	see ta_set_copy_threads()
 * @socket_path: embedded engine: listen here instead of on an abstract socket,
 *	which other network namespaces cannot reach; NULL otherwise
 *
 * Initialise with ta_options_init(), which gives 8 slots of 256 MiB, no seats.
 */
struct ta_options {
	uint64_t slot_bytes;
	uint32_t slots;
	uint32_t seats;
	uint32_t flags;
	uint32_t engine;
	int32_t node;
	uint32_t copy_threads;
	const char *socket_path;
};

void ta_options_init(struct ta_options *options);

/*
 * Creates an arena; costs no slot memory yet.
 *
 * @why: when not NULL, receives on failure a sentence with the figures (what
 * was asked, what there is); at most @why_size bytes with NUL.
 *
 * -EINVAL: a bad option.  -ENOMEM: available memory or the cgroup's headroom
 * is less than slots * stride.  -EDQUOT: a module limit is.  -ENOENT, -EACCES:
 * the device node cannot be opened.  -EOPNOTSUPP: the engine cannot honour a
 * flag.  -EADDRINUSE: @socket_path is taken.
 */
int ta_create(const struct ta_options *options, struct ta_writer **writer,
	      char *why, size_t why_size);

/*
 * What the readers see afterwards: what they hold, then -EPIPE.  Loans that
 * still stand are gone; GPU copies into them are waited for.
 */
void ta_writer_close(struct ta_writer *writer);

/* Longest handle string, with its NUL. */
#define TA_HANDLE_MAX 256
/*
 * The string to give the readers.  It is a secret: whoever knows it (and may
 * open the device) can read every slot.  Lives as long as the writer.
 */
const char *ta_handle(const struct ta_writer *writer);
/* TA_ENGINE_DEVICE or TA_ENGINE_EMBEDDED. */
enum ta_engine_kind ta_writer_engine(const struct ta_writer *writer);

/*
 * Copies a tensor into a free slot and publishes it to every open seat.
 *
 * @tensor: NULL means bytes: u8 of shape [nbytes].  -EINVAL when it does not
 * describe @nbytes bytes.  @ticket may be NULL when readers use ta_next().
 */
int ta_put(struct ta_writer *writer, const void *src, size_t nbytes,
	   const struct ta_tensor *tensor, struct ta_ticket *ticket);
/* The same for the @nr readers listed; -ESTALE when one is not there now. */
int ta_put_to(struct ta_writer *writer, const uint64_t *readers, uint32_t nr,
	      const void *src, size_t nbytes, const struct ta_tensor *tensor,
	      struct ta_ticket *ticket);

/**
 * struct ta_part - bytes of a tensor, as they lie in the caller's memory
 * @data: the first row; may be NULL when there are no bytes
 * @rows: how many; 1 for what is contiguous, 0 for nothing
 * @row_bytes: bytes of each; 0 for nothing
 * @stride: bytes from the start of a row to the start of the next, not looked
 *	at when @rows is 1.  Rows may overlap; 0 repeats the one there is.
 */
struct ta_part {
	const void *data;
	size_t rows;
	size_t row_bytes;
	size_t stride;
};

/*
 * ta_put() of @nr_parts parts, back to back in this order: a batch is stacked,
 * or a tensor that is not contiguous is made so, in the one copy that happens
 * anyway.  @nr_parts may be 0.  @tensor describes the whole.
 *
 * -EINVAL: a NULL where there should be bytes.  -EOVERFLOW: the bytes of a part
 * or of all cannot be counted, or the last of several rows cannot be addressed.
 */
int ta_put_v(struct ta_writer *writer, const struct ta_part *parts,
	     uint32_t nr_parts, const struct ta_tensor *tensor,
	     struct ta_ticket *ticket);
/* The same for the @nr readers listed, as ta_put_to(). */
int ta_put_v_to(struct ta_writer *writer, const uint64_t *readers, uint32_t nr,
		const struct ta_part *parts, uint32_t nr_parts,
		const struct ta_tensor *tensor, struct ta_ticket *ticket);

/*
 * Calls a publication back, when the message that names it could not be sent:
 * readers that have not seen it, by ta_next() or ta_view(), never will, and to
 * ta_view() its ticket is -ESTALE.  Readers that have seen it keep it.
 *
 * @pending: receives how many those are; the slot is free again when it is 0.
 *	May be NULL.  One of them whose call then fails gets it again.
 *
 * -ESTALE: not published by this writer, or every reader has released it.
 */
int ta_retract(struct ta_writer *writer, const struct ta_ticket *ticket,
	       uint32_t *pending);

/*
 * How many threads copy a large tensor into its slot, the calling one included,
 * at most 64; the same as the option copy_threads.  1 never starts a thread.  0,
 * the default, chooses: as many as there are processors that the calling thread
 * may run on (those of the arena's node, if it may run there), or fewer when a
 * cgroup gives less time than that, or when the size does not pay for more.
 *
 * The writer starts threads when a copy first wants them and keeps them, asleep,
 * until it is closed or this asks for fewer.  Where threads cannot be had it
 * does with those there are, and asks for more only after this function has
 * been called.  They take no signals.  Small tensors are copied by the caller
 * alone, whatever this says.  Several puts at once share the threads.
 *
 * Waits for copies that are being made by threads too many.  -EINVAL: over 64.
 */
int ta_set_copy_threads(struct ta_writer *writer, uint32_t threads);

/**
 * struct ta_loan - a slot to be filled in place
 * @data: @nbytes of writable memory, 2 MiB-aligned; old contents undefined
 */
struct ta_loan {
	void *data;
	size_t nbytes;
	uint64_t generation;
	uint32_t slot;
};

int ta_loan(struct ta_writer *writer, size_t nbytes, struct ta_loan **loan);
/*
 * Copies @nbytes from @src to @offset of a loan, as fast as ta_put() would.
 * Several threads may write to different places at once.  -EINVAL: not inside
 * the loan.
 */
int ta_loan_write(struct ta_loan *loan, size_t offset, const void *src,
		  size_t nbytes);
/*
 * The ticket that ta_commit() of @nbytes will give, so that a message which
 * names it can be complete before anything is published.  Until then it is
 * -ESTALE to readers.
 */
void ta_loan_ticket(const struct ta_loan *loan, size_t nbytes,
		    struct ta_ticket *ticket);
/*
 * Publishes the first @nbytes of a loan: no copy.  On success, or when it
 * declines with -ENOTCONN, the loan is gone; otherwise it still stands.
 *
 * -EREMOTEIO: a GPU copy into it (ta_copy_from_device(), ta_commit_after())
 * failed, or CUDA does not tell whether it has ended.
 */
int ta_commit(struct ta_loan *loan, size_t nbytes,
	      const struct ta_tensor *tensor, struct ta_ticket *ticket);
int ta_commit_to(struct ta_loan *loan, const uint64_t *readers, uint32_t nr,
		 size_t nbytes, const struct ta_tensor *tensor,
		 struct ta_ticket *ticket);
/*
 * Gives a loan back unpublished.  Nothing may still be writing to it: drain
 * io_uring reads and GPU copies of your own first.  The loan is gone whatever
 * this returns, but for one result.
 *
 * -EREMOTEIO: CUDA does not tell whether GPU copies into it (as above) have ended,
 * so the loan still stands; try again.
 */
int ta_abort(struct ta_loan *loan);

/* ---- files ---- */

/*
 * A file's bytes into a slot.  Where the system allows it they go there by
 * direct I/O, many reads in flight, with no copy in between and without filling
 * the page cache; bytes that the page cache has already are copied from there.
 * Where io_uring or O_DIRECT are refused, the file is read as can be: the bytes
 * are the same.  ta_load_stats() says what was done.
 *
 * Alignment decides how little work it is.  Least, when @offset is a multiple of
 * the file system's block (512 or 4096 bytes), or when it is a multiple of what
 * the device wants of addresses (4 bytes for NVMe, say), which the kernel says
 * since Linux 6.1.  Otherwise every byte is copied once, through small buffers.
 *
 * @fd is a descriptor of a regular file or block device, open for reading; its
 * flags and its position are neither used nor changed.  Any other that pread(2)
 * works on is read by pread.
 *
 * These calls wait for the file.  They may run at the same time, on one writer,
 * on one loan (in different places), and with any other call.
 *
 *	-ENODATA	the file ends before @offset + @nbytes
 *	-EBADF		not open, or not for reading
 *	-EISDIR, -ESPIPE a directory; a pipe or socket
 *	-EINVAL		not inside the loan, or beyond what a file can have
 *	-ENOMEM		no memory for buffers
 *	others		as reading the file failed, -EIO for one
 *
 * Memory.  A writer's first load of 256 KiB or more makes an io_uring, which
 * stays, and 8 MiB of buffers with it if ever needed.  A load that runs at the
 * same time as another makes its own.  A slot into which as much as it holds
 * has been loaded is registered there, which pins its pages.  ta_trim() unpins
 * them, and waits an eighth of a second at most for the kernel to let them go.
 */

/*
 * Reads @nbytes at @offset of a file to @at of a loan.  Nothing is in flight
 * any more when it returns.  When it fails the loan stands, and what is in that
 * place is undefined.
 */
int ta_load(struct ta_loan *loan, size_t at, int fd, uint64_t offset,
	    size_t nbytes);
/*
 * ta_loan(), ta_load() and ta_commit(): a tensor right out of a file.  When it
 * fails nothing is published and the slot is free again.  Declines as ta_put()
 * does, and before the file is read.
 */
int ta_load_file(struct ta_writer *writer, int fd, uint64_t offset,
		 size_t nbytes, const struct ta_tensor *tensor,
		 struct ta_ticket *ticket);

/**
 * struct ta_load_stats - what a writer's loads have done
 * @loads: ranges that were asked for
 * @failures: how many of them failed
 * @direct_bytes: past the page cache, right into slots
 * @fixed_bytes: how many of these into registered memory
 * @bounced_bytes: past the page cache, and copied from a buffer
 * @cached_bytes: copied from the page cache, which had them
 * @buffered_bytes: through the page cache: few, or for want of a better way
 * @rings: io_urings ever made: one, and one for each load that found it in use
 * @registrations: slots ever registered with io_uring
 * @registered_bytes: bytes registered now
 * @register_ns: what registering took, all together
 * @ring_error: why the last ring that could not be had could not, 0: none
 * @direct_error: why the last file without direct I/O had none, 0: none
 * @register_error: why the last slot that could not be registered could not, 0:
 *	none
 * @reserved: zero
 *
 * Errors are negative, as functions return them.
 */
struct ta_load_stats {
	uint64_t loads;
	uint64_t failures;
	uint64_t direct_bytes;
	uint64_t fixed_bytes;
	uint64_t bounced_bytes;
	uint64_t cached_bytes;
	uint64_t buffered_bytes;
	uint64_t rings;
	uint64_t registrations;
	uint64_t registered_bytes;
	uint64_t register_ns;
	int32_t ring_error;
	int32_t direct_error;
	int32_t register_error;
	int32_t reserved;
};

int ta_load_stats(struct ta_writer *writer, struct ta_load_stats *stats);

/* ---- memory and readers ---- */

/* Builds @slots slots of @nbytes now instead of in their first ta_put(). */
int ta_populate(struct ta_writer *writer, uint32_t slots, size_t nbytes);
/* Frees idle slots' memory until at most @keep_bytes are left; -EBUSY: pinned. */
int ta_trim(struct ta_writer *writer, uint64_t keep_bytes,
	    uint64_t *freed_bytes);
/* Throws out a reader: see struct ta_reader_stats for ids. -ESTALE: no such. */
int ta_evict(struct ta_writer *writer, uint64_t reader);
/* Closes a seat that nobody has claimed, so that publications stop waiting. */
int ta_close_seat(struct ta_writer *writer, uint32_t seat);

/*
 * A descriptor and poll(2) events that report "a slot is free", for event
 * loops.  Owned by the writer.
 */
int ta_writer_poll_fd(struct ta_writer *writer, short *events);

/*
 * Embedded engine: one end of a new connection, for a reader that cannot reach
 * the socket by name; pass it by inheritance or SCM_RIGHTS to ta_attach_fd().
 * The caller closes it.  -EOPNOTSUPP on the device engine, whose readers need
 * only the device node.
 */
int ta_writer_connect(struct ta_writer *writer);

/* ---- reader ---- */

/*
 * Attaches to an arena and maps it.  The calling process becomes the reader's
 * owner; its death frees everything this reader held.
 *
 * -EINVAL: not a handle.  -EACCES: no such arena, wrong cookie, or a uid the
 * writer does not accept.  -EPIPE, -ECONNREFUSED: the writer is gone.
 * -EUSERS: 64 readers are attached.  -ETIMEDOUT: embedded engine: the writer
 * did not answer in ten seconds.
 */
int ta_attach(const char *handle, struct ta_reader **reader);
/* The same over a descriptor from ta_writer_connect(), which is consumed. */
int ta_attach_fd(const char *handle, int fd, struct ta_reader **reader);
/*
 * Releases everything held, unmaps.  Views still around become invalid; GPU
 * copies from them are waited for.  Should CUDA not tell whether those have
 * ended, the slots they read stay taken until this process ends.
 */
void ta_reader_close(struct ta_reader *reader);

/* This attachment's id: never reused in its arena. */
uint64_t ta_reader_id(const struct ta_reader *reader);
uint32_t ta_reader_seat(const struct ta_reader *reader);
/* TA_WRITABLE_READERS when views may be written to; other flags of the arena. */
uint32_t ta_reader_flags(const struct ta_reader *reader);
enum ta_engine_kind ta_reader_engine(const struct ta_reader *reader);

/**
 * struct ta_view - a reader's hold on a published slot
 * @data: the bytes; read-only unless the arena has TA_WRITABLE_READERS
 * @nbytes: how many
 * @tensor: their type and shape
 * @ticket: what was published
 */
struct ta_view {
	const void *data;
	size_t nbytes;
	struct ta_tensor tensor;
	struct ta_ticket ticket;
};

/*
 * The oldest publication addressed to this reader that it has not seen.
 *
 * @timeout_ms: 0 does not wait, -1 waits for ever.  -EAGAIN: nothing arrived
 * in time.  -EPIPE: the writer is gone and nothing is left.  -EINTR: a signal.
 * -EOWNERDEAD: evicted.  -EPROTO: the publication does not carry a tensor.
 */
int ta_next(struct ta_reader *reader, int timeout_ms, struct ta_view **view);
/*
 * The publication a ticket names.  Several views of one publication may be
 * open; the slot is released with the last.  -ESTALE: reused, already
 * released, or called back.  -ENXIO: not addressed to this reader.
 */
int ta_view(struct ta_reader *reader, const struct ta_ticket *ticket,
	    struct ta_view **view);
/* Done with the bytes.  The view is gone whatever this returns. */
int ta_release(struct ta_view *view);

/*
 * A descriptor that polls readable when ta_next() would not return -EAGAIN.  A
 * publication may be called back meanwhile: call ta_next() with a timeout of 0.
 */
int ta_reader_poll_fd(struct ta_reader *reader, short *events);

/* ---- CUDA ---- */

/*
 * Slots to and from GPUs.  Nothing of CUDA is needed to build or link: the
 * driver that the process has loaded is used, and with it the contexts and
 * streams of whatever runtime (PyTorch's, say) the process has.  No context is
 * ever created: until this process has one, and where there is no CUDA, slots
 * are left unpinned and the calls that take a stream return -ENODEV.
 *
 * Pinning.  A reader's slot is registered with CUDA (pinned) at the first
 * ta_view() or ta_next() that finds a context, as a whole, and stays so for
 * later tensors; anew when it has grown.  ta_cuda_prepare() does it ahead.  What
 * does not work leaves the slot unpinned, where copies work but are slower;
 * ta_cuda_stats() says why.  To answer a ta_trim() that found pages pinned, idle
 * slots are unregistered in the next ta_view() or ta_next().
 *
 * Streams.  @stream is a cudaStream_t or CUstream, of any device and of any
 * runtime in the process; NULL is the legacy default stream of the context that
 * the thread has current.  It must not have been destroyed: CUDA may crash over one
 * that was.
 * ta_copy_to_device() and ta_release_after() mark the view: it stays open, and
 * once it is released the slot waits for all that was marked.  ta_release()
 * itself never waits.  The slot is freed by whatever is called next on the
 * reader, or, when nothing is, by a thread that starts with the first release
 * that has to wait.
 *
 * A stream that is being captured into a graph is refused, -EINPROGRESS: the
 * graph would copy from the slot at every launch, and hold it for ever.  Copy
 * into memory of the graph's own, before it is launched.
 *
 * No function of this library may be called from a host function of a stream
 * (cudaLaunchHostFunc): CUDA may not be called there, and to wait there for a
 * lock whose holder waits for the stream would be for ever.
 *
 * When a device fails, or its context is destroyed, what waits for it is
 * released, as its copies have ended.  Any other answer of CUDA's keeps the slot
 * until there is a better one.  A failed CUDA call is -EREMOTEIO, and a lack of
 * memory -ENOMEM, after the stream has been waited for: the view may be released,
 * whatever the caller had sent there.  Where CUDA would not wait either, the slot
 * stays taken until the reader is closed, which waits for all of the context's
 * streams.  ta_cuda_stats() has CUDA's own name for the error.  What the caller's
 * next cudaGetLastError() says has nothing to do with what is done here: nothing is
 * left there, and nothing is taken away.
 */

/* How a slot stands with CUDA. */
enum ta_pin_state {
	TA_UNPINNED, /* not asked for, no context, or no room in the budget */
	TA_PINNED, /* registered here */
	TA_PINNED_ELSEWHERE, /* registered by the caller's own code */
	TA_PIN_FAILED, /* tried; not tried again until the slot grows */
};

/**
 * struct ta_cuda_slot - how one slot stands with CUDA
 * @state: enum ta_pin_state
 * @reserved: zero
 * @bytes: registered, or tried
 * @ns: what registering took
 */
struct ta_cuda_slot {
	uint32_t state;
	uint32_t reserved;
	uint64_t bytes;
	uint64_t ns;
};

/**
 * struct ta_cuda_stats - what one end has done with CUDA
 * @slots: slots of the arena
 * @cuda_version: newest CUDA that the driver serves, 13000 for 13.0; 0: no
 *	driver yet
 * @pinned_slots: slots registered now
 * @pending: releases that wait for streams now
 * @pinned_bytes: bytes registered now
 * @pin_budget: most bytes that may be
 * @pins: registrations ever made
 * @unpins: how many of them have been undone
 * @pin_ns: what they took, all together
 * @pin_failures: slots that could not be registered
 * @over_budget: slots left unpinned for the budget
 * @copies: copies sent to streams
 * @copied_bytes: their bytes
 * @deferred: releases that had to wait for streams
 * @events: CUDA events in existence; most that were ever needed at one time
 * @errors: CUDA calls that failed
 * @error: CUDA's number of the last such error, 0: none yet
 * @reserved: zero
 * @error_text: the call, and CUDA's name for the error
 */
struct ta_cuda_stats {
	uint32_t slots;
	uint32_t cuda_version;
	uint32_t pinned_slots;
	uint32_t pending;
	uint64_t pinned_bytes;
	uint64_t pin_budget;
	uint64_t pins;
	uint64_t unpins;
	uint64_t pin_ns;
	uint64_t pin_failures;
	uint64_t over_budget;
	uint64_t copies;
	uint64_t copied_bytes;
	uint64_t deferred;
	uint64_t events;
	uint64_t errors;
	int32_t error;
	uint32_t reserved;
	char error_text[104];
};

/*
 * Pins every slot that has memory now, as far as the budget goes, so that no
 * ta_view() has to: after the writer's ta_populate(), say.  @pinned, when not
 * NULL, receives how many are pinned then.
 * -ENODEV: no context.
 */
int ta_cuda_prepare(struct ta_reader *reader, uint32_t *pinned);
/*
 * Most bytes this reader may keep pinned; there is no limit at first, and 0
 * pins nothing.  Slots above it are unregistered at once, those in use when they
 * are released, and later those least recently used for the sake of others.
 */
int ta_cuda_pin_budget(struct ta_reader *reader, uint64_t bytes);
/*
 * Sends @bytes at @offset of a view to @dst, memory of the stream's device.
 * Returns at once if the slot is pinned.  The view may be released at any time
 * from then on.  -EINVAL: not inside the view.
 */
int ta_copy_to_device(struct ta_view *view, void *dst, size_t offset,
		      size_t bytes, void *stream);
/*
 * The slot is to wait also for all that has been sent to @stream so far: copies
 * and kernels of the caller's own that read the view.  For each such stream.
 */
int ta_release_after(struct ta_view *view, void *stream);
/* @rows may be NULL; otherwise up to @nr are filled, one a slot. */
int ta_cuda_stats(struct ta_reader *reader, struct ta_cuda_stats *stats,
		  struct ta_cuda_slot *rows, uint32_t nr);

/*
 * The writer's side: a tensor that is on the GPU goes right into a loan.  The
 * first such copy into a slot pins it for the writer.
 */

/*
 * Sends @bytes at @src, memory of the stream's device, to @offset of a loan.
 * ta_commit(), ta_abort() and ta_writer_close() wait for it.  When CUDA fails the
 * stream has been waited for, as above, or these wait for all of its context's.
 */
int ta_copy_from_device(struct ta_loan *loan, size_t offset, const void *src,
			size_t bytes, void *stream);
/*
 * ta_commit() once all that has been sent to @stream so far is done: copies and
 * kernels of the caller's own that write to the loan.  Waits, without spinning.
 * An engine that must not wait records an event of its own and calls ta_commit()
 * when that is done.
 */
int ta_commit_after(struct ta_loan *loan, void *stream, size_t nbytes,
		    const struct ta_tensor *tensor, struct ta_ticket *ticket);
int ta_cuda_writer_stats(struct ta_writer *writer, struct ta_cuda_stats *stats,
			 struct ta_cuda_slot *rows, uint32_t nr);

/* ---- observation ---- */

/* Meanings, field by field, as struct tensorarena_stats of the uAPI. */
struct ta_stats {
	uint32_t slots;
	uint32_t free;
	uint32_t writing;
	uint32_t published;
	uint32_t readers; /* open seats */
	uint32_t reserved;
	uint64_t allocated_bytes;
	uint64_t oldest_ns;
	uint64_t puts;
	uint64_t put_bytes;
	uint64_t unaddressed;
	uint64_t aborted;
	uint64_t released;
	uint64_t declined_no_slot;
	uint64_t declined_oversize;
	uint64_t declined_no_memory;
	uint64_t attached;
	uint64_t detached;
	uint64_t evicted;
	uint64_t reclaimed_dead_readers;
	uint64_t retracted;
};

struct ta_reader_stats {
	uint64_t reader; /* id, 0: the seat is unclaimed */
	uint64_t oldest_ns; /* age of its oldest pending publication, 0: none */
	uint32_t seat;
	int32_t pid; /* 0: unknown */
	uint32_t pending;
	uint32_t reserved;
};

/*
 * @rows may be NULL; otherwise up to @nr rows are filled, one an open seat.
 * stats->readers says how many seats are open.
 */
int ta_stats(struct ta_writer *writer, struct ta_stats *stats,
	     struct ta_reader_stats *rows, uint32_t nr);

/**
 * struct ta_observation - an arena as seen from outside
 * @arena: its id
 * @slot_bytes: largest tensor
 * @stride: distance of slots, bytes
 * @engine: enum ta_engine_kind
 * @writer_pid: the writer's process, as the writer itself sees it
 * @stats: as ta_stats()
 */
struct ta_observation {
	uint64_t arena;
	uint64_t slot_bytes;
	uint64_t stride;
	uint32_t engine;
	int32_t writer_pid;
	struct ta_stats stats;
};

/*
 * Looks at an arena without taking a seat in it, for monitoring.  Up to @nr
 * @rows are filled, one an open seat; @rows may be NULL.
 *
 * -EOPNOTSUPP: an arena of the device engine, which shows these figures in
 * /sys/class/tensorarena/arena<id> to everybody; @observation has its id.
 * -EINVAL: not a handle.  -EACCES: wrong cookie, or a uid the writer does not
 * accept.  -EPIPE, -ECONNREFUSED: the writer is gone.  -ETIMEDOUT: it did not
 * answer in ten seconds.
 */
int ta_observe(const char *handle, struct ta_observation *observation,
	       struct ta_reader_stats *rows, uint32_t nr);

/* A sentence for an error number of either sign, in tensorarena's terms. */
const char *ta_strerror(int err);
/* Whether a result of ta_put() or ta_loan() is a decline, not a failure. */
bool ta_is_decline(int err);

#ifdef __cplusplus
}
#endif

#endif /* TENSORARENA_H */
