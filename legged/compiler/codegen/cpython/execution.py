"""LLVM IR that runs the code of a kernel on arrays whose addresses are known; see `entry_point`.

    int64 run(const Kernel *kernel, real *const *pointers, const int64 *strides, int64 states)

The function computes one state if `states` is -1, else a batch. It returns 0; or 1 plus the index of the first state
whose results are not finite; or -1 if Python has raised an exception. A batch that threads may share is computed by a
function in Python, which gets the number of states and the address of the descriptors of the arrays.
"""

CODE = """
define internal i64 @run(ptr %kernel, ptr %pointers, ptr %strides, i64 %states) nounwind {
start:
  %is_one = icmp eq i64 %states, -1
  br i1 %is_one, label %one, label %many
one:
  %function = POINTER %kernel Kernel.function
  %bad = call i64 %function(ptr %pointers)
  ret i64 %bad
many:
  %inputs = LOAD %kernel Kernel.inputs
  %outputs = LOAD %kernel Kernel.outputs
  %count = add i64 %inputs, %outputs
  %rows = alloca [3 x i64], i64 %count
  br label %next
next:
  %k = phi i64 [0, %many], [%k_next, %describe]
  %is_left = icmp slt i64 %k, %count
  br i1 %is_left, label %describe, label %call
describe:
  %pointer_at = getelementptr i64, ptr %pointers, i64 %k
  %pointer = load i64, ptr %pointer_at, align 8
  %stride_at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride_at, align 8
  %row = getelementptr [3 x i64], ptr %rows, i64 %k
  store i64 %pointer, ptr %row, align 8
  %row_stride = getelementptr i64, ptr %row, i64 1
  store i64 %stride, ptr %row_stride, align 8
  %row_table = getelementptr i64, ptr %row, i64 2
  store i64 0, ptr %row_table, align 8
  %k_next = add i64 %k, 1
  br label %next
call:
  %unshared = LOAD %kernel Kernel.unshared
  %is_unshared = icmp sle i64 %states, %unshared
  br i1 %is_unshared, label %alone, label %shared
alone:
  %loop = POINTER %kernel Kernel.batch_loop
  %work = POINTER %kernel Kernel.work
  %first = call i64 %loop(i64 0, i64 %states, ptr %rows, ptr %work)
  %result = add i64 %first, 1
  ret i64 %result
shared:
  %share = POINTER %kernel Kernel.share
  %arguments = alloca [2 x ptr]
  %number = call ptr @PyLong_FromSsize_t(i64 %states)
  %address = call ptr @PyLong_FromVoidPtr(ptr %rows)
  store ptr %number, ptr %arguments, align 8
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %address, ptr %second, align 8
  %answer = call ptr @PyObject_Vectorcall(ptr %share, ptr %arguments, i64 2, ptr null)
  call void @Py_DecRef(ptr %number)
  call void @Py_DecRef(ptr %address)
  %has_answer = icmp ne ptr %answer, null
  br i1 %has_answer, label %answered, label %raised
answered:
  %index = call i64 @PyLong_AsSsize_t(ptr %answer)
  call void @Py_DecRef(ptr %answer)
  %bad_state = add i64 %index, 1
  ret i64 %bad_state
raised:
  ret i64 -1
}
"""
"""The function, with the abbreviations of `entry_point`."""
