"""Machine code of helper threads: they wait for work, take chunks of it and report its end without Python.

    int64 legged_help(Worker *worker)               waits for jobs and works on them; never returns
    int64 legged_run(Job *job, int64 most)          works on a job with the help of idle workers
    int64 legged_pause(int64 count)                 waits for `count` rounds of a polling loop

A job is a task, `int64 task(int64 first, int64 end, void *argument, void *work)`, for items 0, ..., count - 1. The
caller and its helpers take chunks of `step` items by an atomic counter. `legged_run` returns `UNFINISHED` after `most`
chunks of the caller, so that Python can handle signals, and is then called again. Its last call returns the smallest
result of the task as an unsigned number, -1 if all are.

A worker has a mailbox: zero, the address of a job, or that address + 1 while it works on it. A caller places a job in
empty mailboxes, and takes it back at the end where the worker has not begun; it waits for the others. Both sides poll
for a number of rounds before they sleep on a lock of CPython, which works without an interpreter on every platform: a
worker that sleeps sets `asleep`, and a caller writes its lock to `waiter`. Whoever resets the entry by an atomic
exchange releases the lock, so that it is released exactly once for each sleep.
"""

from __future__ import annotations

from legged.compiler.codegen.ir_writer import ATTRIBUTES, with_entries

HELP, RUN, PAUSE = "legged_help", "legged_run", "legged_pause"
UNFINISHED = -2
"""Result of `legged_run` when chunks are left."""
SYMBOLS = ("PyThread_acquire_lock", "PyThread_release_lock")
"""Functions of CPython that the code calls."""
WORKER = ("mailbox", "asleep", "waiter", "lock", "next", "rounds")
"""Entries of a worker, 64-bit integers: see above; the lock that it sleeps on, the address of the next worker, and the
rounds of polling."""
JOB = (
    *("task", "argument", "count", "step", "work", "work_size", "workers", "helpers", "lock", "rounds", "is_posted"),
    *("next", "participants", "result"),
)
"""Entries of a job, 64-bit integers: the task; its argument; the number of items; those of a chunk; working memory and
the size of the part of each thread, [bytes]; the address of the first worker; the largest number of helpers; the lock
and the rounds of polling of the caller; whether workers have been asked, at first zero; and three counters: the next
item, at first zero, the number of threads that take part, at first one, and the smallest result, at first -1."""

_PAUSES = {"x86": ("llvm.x86.sse2.pause", ""), "aarch64": ("llvm.aarch64.hint", "i32 1")}
_CODE = """
define i64 @legged_pause(i64 %count) ATTRIBUTES {
start:
  br label %round
round:
  %k = phi i64 [0, %start], [%k_next, %round]
  PAUSE
  %k_next = add i64 %k, 1
  %more = icmp slt i64 %k_next, %count
  br i1 %more, label %round, label %end
end:
  ret i64 0
}

define internal i1 @take(ptr %job, ptr %work, i64 %most) ATTRIBUTES {
start:
  %function = POINTER %job Job.task
  %argument = POINTER %job Job.argument
  %count = LOAD %job Job.count
  %step = LOAD %job Job.step
  %next = AT %job Job.next
  %result = AT %job Job.result
  br label %chunk
chunk:
  %k = phi i64 [0, %start], [%k_next, %work_on]
  %enough = icmp sge i64 %k, %most
  br i1 %enough, label %stop, label %try
try:
  %first = atomicrmw add ptr %next, i64 %step seq_cst
  %is_left = icmp slt i64 %first, %count
  br i1 %is_left, label %work_on, label %stop
work_on:
  %whole = add i64 %first, %step
  %end = call i64 @llvm.smin.i64(i64 %whole, i64 %count)
  %outcome = call i64 %function(i64 %first, i64 %end, ptr %argument, ptr %work)
  %before = atomicrmw umin ptr %result, i64 %outcome seq_cst
  %k_next = add i64 %k, 1
  br label %chunk
stop:
  ret i1 %enough
}

define i64 @legged_help(ptr %worker) ATTRIBUTES {
start:
  %mailbox = AT %worker Worker.mailbox
  %asleep = AT %worker Worker.asleep
  %waiter = AT %worker Worker.waiter
  %lock = POINTER %worker Worker.lock
  %rounds = LOAD %worker Worker.rounds
  br label %idle
idle:
  br label %poll
poll:
  %k = phi i64 [0, %idle], [%k_next, %wait]
  %number = load atomic i64, ptr %mailbox seq_cst, align 8
  %is_empty = icmp eq i64 %number, 0
  br i1 %is_empty, label %wait, label %begin
wait:
  PAUSE
  %k_next = add i64 %k, 1
  %is_early = icmp slt i64 %k_next, %rounds
  br i1 %is_early, label %poll, label %prepare
prepare:
  store atomic i64 1, ptr %asleep seq_cst, align 8
  %late = load atomic i64, ptr %mailbox seq_cst, align 8
  %is_still_empty = icmp eq i64 %late, 0
  br i1 %is_still_empty, label %sleep, label %stay
stay:
  %stayed = atomicrmw xchg ptr %asleep, i64 0 seq_cst
  %is_awake = icmp eq i64 %stayed, 1
  br i1 %is_awake, label %idle, label %sleep
sleep:
  %woken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %idle
begin:
  %busy = add i64 %number, 1
  %exchange = cmpxchg ptr %mailbox, i64 %number, i64 %busy seq_cst seq_cst
  %is_mine = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_mine, label %help, label %idle
help:
  %job = inttoptr i64 %number to ptr
  %participants = AT %job Job.participants
  %part = atomicrmw add ptr %participants, i64 1 seq_cst
  %memory = LOAD %job Job.work
  %size = LOAD %job Job.work_size
  %offset = mul i64 %part, %size
  %address = add i64 %memory, %offset
  %work = inttoptr i64 %address to ptr
  %rest = call i1 @take(ptr %job, ptr %work, i64 9223372036854775807)
  store atomic i64 0, ptr %mailbox seq_cst, align 8
  %waiting = atomicrmw xchg ptr %waiter, i64 0 seq_cst
  %is_awaited = icmp ne i64 %waiting, 0
  br i1 %is_awaited, label %report, label %idle
report:
  %caller = inttoptr i64 %waiting to ptr
  call void @PyThread_release_lock(ptr %caller)
  br label %idle
}

define i64 @legged_run(ptr %job, i64 %most) ATTRIBUTES {
start:
  %number = ptrtoint ptr %job to i64
  %busy = add i64 %number, 1
  %workers = LOAD %job Job.workers
  %lock_number = LOAD %job Job.lock
  %lock = inttoptr i64 %lock_number to ptr
  %rounds = LOAD %job Job.rounds
  %posted = LOAD %job Job.is_posted
  %is_posted = icmp ne i64 %posted, 0
  br i1 %is_posted, label %work_on, label %post
post:
  %is_posted_at = AT %job Job.is_posted
  store i64 1, ptr %is_posted_at, align 8
  %helpers = LOAD %job Job.helpers
  br label %ask
ask:
  %w = phi i64 [%workers, %post], [%w_next, %asked]
  %wanted = phi i64 [%helpers, %post], [%wanted_next, %asked]
  %no_worker = icmp eq i64 %w, 0
  %none_wanted = icmp eq i64 %wanted, 0
  %all_asked = or i1 %no_worker, %none_wanted
  br i1 %all_asked, label %work_on, label %offer
offer:
  %worker = inttoptr i64 %w to ptr
  %mailbox = AT %worker Worker.mailbox
  %exchange = cmpxchg ptr %mailbox, i64 0, i64 %number seq_cst seq_cst
  %is_free = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_free, label %accepted, label %asked
accepted:
  %asleep = AT %worker Worker.asleep
  %slept = atomicrmw xchg ptr %asleep, i64 0 seq_cst
  %is_asleep = icmp eq i64 %slept, 1
  br i1 %is_asleep, label %wake, label %asked
wake:
  %bed = POINTER %worker Worker.lock
  call void @PyThread_release_lock(ptr %bed)
  br label %asked
asked:
  %accepting = zext i1 %is_free to i64
  %wanted_next = sub i64 %wanted, %accepting
  %w_next = LOAD %worker Worker.next
  br label %ask
work_on:
  %work = POINTER %job Job.work
  %is_unfinished = call i1 @take(ptr %job, ptr %work, i64 %most)
  br i1 %is_unfinished, label %later, label %finish
later:
  ret i64 UNFINISHED
finish:
  %v = phi i64 [%workers, %work_on], [%v_next, %left]
  %all_left = icmp eq i64 %v, 0
  br i1 %all_left, label %end, label %withdraw
withdraw:
  %other = inttoptr i64 %v to ptr
  %box = AT %other Worker.mailbox
  %withdrawal = cmpxchg ptr %box, i64 %number, i64 0 seq_cst seq_cst
  br label %poll
poll:
  %k = phi i64 [0, %withdraw], [%k_next, %wait]
  %content = load atomic i64, ptr %box seq_cst, align 8
  %is_busy = icmp eq i64 %content, %busy
  br i1 %is_busy, label %wait, label %left
wait:
  PAUSE
  %k_next = add i64 %k, 1
  %is_early = icmp slt i64 %k_next, %rounds
  br i1 %is_early, label %poll, label %prepare
prepare:
  %waiter = AT %other Worker.waiter
  %entry = cmpxchg ptr %waiter, i64 0, i64 %lock_number seq_cst seq_cst
  %is_entered = extractvalue { i64, i1 } %entry, 1
  br i1 %is_entered, label %check, label %withdraw
check:
  %late = load atomic i64, ptr %box seq_cst, align 8
  %is_still_busy = icmp eq i64 %late, %busy
  br i1 %is_still_busy, label %sleep, label %stay
stay:
  %removal = cmpxchg ptr %waiter, i64 %lock_number, i64 0 seq_cst seq_cst
  %is_awake = extractvalue { i64, i1 } %removal, 1
  br i1 %is_awake, label %left, label %sleep
sleep:
  %woken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %withdraw
left:
  %v_next = LOAD %other Worker.next
  br label %finish
end:
  %smallest_at = AT %job Job.result
  %smallest = load atomic i64, ptr %smallest_at seq_cst, align 8
  ret i64 %smallest
}

declare i64 @llvm.smin.i64(i64, i64)
declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
"""


def assembly(family: str) -> str:
    """Return the LLVM module.

    Args:
        family: Family of the processor, "x86", "aarch64" or another one.
    """
    name, argument = _PAUSES.get(family, ("", ""))
    code = with_entries(_CODE, {"Worker": WORKER, "Job": JOB})
    code = code.replace("PAUSE", f"call void @{name}({argument})" if name else "")
    code = code.replace("UNFINISHED", str(UNFINISHED)).replace("ATTRIBUTES", ATTRIBUTES)
    return code + (f"declare void @{name}({argument.partition(' ')[0]})\n" if name else "")
