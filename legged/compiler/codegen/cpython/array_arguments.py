"""LLVM IR that checks an argument of a kernel, a NumPy array, by functions of CPython and NumPy; see `entry_point`.

    real *data(PyObject *x, const Kernel *kernel, const Array *array, int32 flags, int64 *states, int64 *stride)
    bool overlaps(real *const *pointers, const Kernel *kernel, int64 number, int64 states)

The first function returns the address of the numbers of an array for one state, or for a batch; null for any other
object. It sets the number of states of a batch, unless it is known, and the distance from one state to the next,
[bytes]; zero for one state. NumPy has no function for the number of axes: `PyArray_CheckAxis` replaces axis -1 by that
number less one, and by zero for an array without axes, which has one entry. The length of the second axis of a batch is
that of its first item. The second function returns whether an array, by its number, shares memory with one before it.
"""

CODE = """
define internal ptr @data(ptr %x, ptr %kernel, ptr %array, i32 %flags, ptr %states, ptr %stride_at) nounwind {
start:
  %axis = alloca i32
  %rank = LOAD %array Array.rank
  %size = LOAD %array Array.size
  %length = LOAD %array Array.length
  %ndarray = POINTER %kernel Kernel.ndarray
  %instance = call i32 @PyObject_IsInstance(ptr %x, ptr %ndarray)
  %is_array = icmp eq i32 %instance, 1
  br i1 %is_array, label %axes, label %error
axes:
  store i32 -1, ptr %axis
  %whole = call ptr @PyArray_CheckAxis(ptr %x, ptr %axis, i32 0)
  %has_axis = icmp ne ptr %whole, null
  br i1 %has_axis, label %lengths, label %error
lengths:
  call void @Py_DecRef(ptr %whole)
  %last = load i32, ptr %axis
  %last_axis = sext i32 %last to i64
  %own_rank = add i64 %last_axis, 1
  %own_size = call i64 @PyArray_Size(ptr %x)
  %has_size = icmp eq i64 %own_size, %size
  %has_rank = icmp eq i64 %own_rank, %rank
  %has_one_axis = icmp eq i64 %rank, 1
  %is_not_one = icmp ne i64 %size, 1
  %fits_one = and i1 %has_rank, %has_one_axis
  %fits_size_alone = and i1 %has_size, %is_not_one
  %is_vector = and i1 %fits_one, %fits_size_alone
  br i1 %is_vector, label %layout, label %sized
sized:
  %own_length = call i64 @PyObject_Size(ptr %x)
  %is_sized = icmp sgt i64 %own_length, 0
  br i1 %is_sized, label %one, label %error
one:
  %has_length = icmp eq i64 %own_length, %length
  %has_few_axes = icmp ult i64 %rank, 3
  %has_both = and i1 %has_rank, %has_length
  %has_all = and i1 %has_both, %has_size
  %is_one = and i1 %has_all, %has_few_axes
  br i1 %is_one, label %layout, label %many
many:
  %more = add i64 %rank, 1
  %has_more = icmp eq i64 %own_rank, %more
  %all_sizes = mul i64 %own_length, %size
  %has_sizes = icmp eq i64 %own_size, %all_sizes
  %known = load i64, ptr %states
  %is_first = icmp eq i64 %known, -1
  %is_equal = icmp eq i64 %known, %own_length
  %agrees = or i1 %is_first, %is_equal
  %fits_rank = and i1 %has_more, %has_few_axes
  %fits_size = and i1 %has_sizes, %agrees
  %is_many = and i1 %fits_rank, %fits_size
  br i1 %is_many, label %many_axes, label %no
many_axes:
  %has_two_axes = icmp eq i64 %rank, 2
  br i1 %has_two_axes, label %first, label %count
first:
  %item = call ptr @PySequence_GetItem(ptr %x, i64 0)
  %has_item = icmp ne ptr %item, null
  br i1 %has_item, label %first_length, label %error
first_length:
  %item_length = call i64 @PyObject_Size(ptr %item)
  call void @Py_DecRef(ptr %item)
  %has_item_length = icmp eq i64 %item_length, %length
  br i1 %has_item_length, label %count, label %no
count:
  store i64 %own_length, ptr %states
  %word = LOAD %kernel Kernel.word
  %bytes = mul i64 %size, %word
  br label %layout
layout:
  %stride = phi i64 [0, %lengths], [0, %one], [%bytes, %count]
  %dtype = POINTER %kernel Kernel.dtype
  call void @Py_IncRef(ptr %dtype)
  %converted = call ptr @PyArray_FromArray(ptr %x, ptr %dtype, i32 %flags)
  %is_converted = icmp ne ptr %converted, null
  br i1 %is_converted, label %identity, label %error
identity:
  call void @Py_DecRef(ptr %converted)
  %is_same = icmp eq ptr %converted, %x
  br i1 %is_same, label %yes, label %no
yes:
  %address = call ptr @PyArray_GetPtr(ptr %x, ptr @zeros)
  store i64 %stride, ptr %stride_at, align 8
  ret ptr %address
error:
  call void @PyErr_Clear()
  br label %no
no:
  ret ptr null
}

define internal i1 @overlaps(ptr %pointers, ptr %kernel, i64 %number, i64 %states) nounwind {
start:
  %arrays = POINTER %kernel Kernel.arrays
  %word = LOAD %kernel Kernel.word
  %is_one = icmp eq i64 %states, -1
  %rows = select i1 %is_one, i64 1, i64 %states
  %own = getelementptr i64, ptr %pointers, i64 %number
  %own_array = getelementptr [4 x i64], ptr %arrays, i64 %number
  %begin = load i64, ptr %own, align 8
  %own_size = LOAD %own_array Array.size
  %own_bytes = mul i64 %own_size, %word
  %own_length = mul i64 %own_bytes, %rows
  %end = add i64 %begin, %own_length
  br label %next
next:
  %k = phi i64 [0, %start], [%k_next, %check]
  %is_left = icmp slt i64 %k, %number
  br i1 %is_left, label %check, label %no
check:
  %pointer = getelementptr i64, ptr %pointers, i64 %k
  %array = getelementptr [4 x i64], ptr %arrays, i64 %k
  %first = load i64, ptr %pointer, align 8
  %size = LOAD %array Array.size
  %bytes = mul i64 %size, %word
  %length = mul i64 %bytes, %rows
  %last = add i64 %first, %length
  %is_before = icmp ule i64 %last, %begin
  %is_after = icmp ule i64 %end, %first
  %is_apart = or i1 %is_before, %is_after
  %k_next = add i64 %k, 1
  br i1 %is_apart, label %next, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_New(i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromSsize_t(i64)
declare ptr @PyLong_FromVoidPtr(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyObject_Type(ptr)
declare i32 @PyObject_IsInstance(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare ptr @PySequence_GetItem(ptr, i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i64 @PyArray_Size(ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare ptr @PyArray_New(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)
declare ptr @PyArray_FromArray(ptr, ptr, i32)
declare ptr @PyArray_GetPtr(ptr, ptr)
declare ptr @PyArray_CheckAxis(ptr, ptr, i32)
"""
"""The functions, with the abbreviations of `entry_point`, and the declarations of all functions that are called."""
