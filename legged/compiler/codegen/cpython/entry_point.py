"""The entry point of all kernels: a built-in function of Python whose body is machine code.

    PyObject *legged_entry_point(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)

The function takes a tenth of the time of a call through ctypes. It handles arguments that are arrays of the kernel's
element type, C-contiguous and aligned, of the shape for one state with at most two axes, or with the axis of a batch,
which all batched arguments share, before them, or floats for scalars. Results are new, or go to such arrays given as
`out`. All other calls, large results, and results that are not finite go to the fallback, a
function in Python with the same arguments. Batches that threads may share go to another function in Python, which gets
the number of states and the address of the descriptors of all arrays.

Objects are read and made by functions of CPython's stable interface and of NumPy's table of C functions alone, so that
no layout of an object matters. The first item of the tuple `self` is the address of a `Kernel`, whose `arrays` are one
`Array` for each argument and then for each result; both consist of 64-bit integers. The number of axes, the length of
the first one and the number of entries determine a shape of one or two axes.
"""

from __future__ import annotations

import ctypes
import re
import sys
import sysconfig
from functools import cache
from typing import Any

import numpy as np

from legged.compiler.codegen.cpython import array_arguments, execution
from legged.compiler.codegen.ir_writer import with_entries
from legged.compiler.ir.graph import Graph

ENTRY_POINT = "legged_entry_point"
NOT_LOADED = "legged_not_loaded"
"""Takes the place of the code for one state until that is loaded: calls go to the fallback, which loads it."""
_NOT_LOADED = f"\ndefine i64 @{NOT_LOADED}(ptr %arrays) {{\n  ret i64 1\n}}\n"
KERNEL = (
    *("function", "inputs", "outputs", "is_bare", "type_number", "word", "dtype", "ndarray", "float", "float64"),
    *("out", "fallback", "rebuild", "arrays", "batch_loop", "work", "most", "unshared", "share"),
)
"""Entries of a kernel: the address of its code for one state; the numbers of arguments and results; whether it returns
one array in place of a tuple; NumPy's number of the element type, and its size, [bytes]; the addresses of the data
type, of the types of arrays and numbers, of the text "out", of the fallback, of a function that converts the tuple of
results, or zero, and of the `Array`s. The last five are for batches: the addresses of `batch_loop` and of its working
memory, the largest number of states, at first 0, the largest number that one thread computes, and the address of the
function for more, which returns the index of the first state without a finite result, or -1."""
ARRAY = ("rank", "length", "size", "shape")
"""Entries of an array: the number of axes, the length of the first one, the number of entries, and the address of the
lengths of all axes."""
CPYTHON = (
    *("PyTuple_GetItem", "PyTuple_SetItem", "PyTuple_Size", "PyTuple_New", "PyLong_AsVoidPtr", "PyFloat_AsDouble"),
    *("PyLong_FromSsize_t", "PyLong_FromVoidPtr", "PyLong_AsSsize_t", "PyObject_Type", "PyObject_IsInstance"),
    *("PyObject_Size", "PySequence_GetItem", "PyObject_Vectorcall", "PyErr_Clear", "Py_IncRef", "Py_DecRef"),
)
"""Functions of CPython that the code calls."""
NUMPY = {
    **{"PyArray_Size": 59, "PyArray_Scalar": 60, "PyArray_New": 93},
    **{"PyArray_FromArray": 109, "PyArray_GetPtr": 160, "PyArray_CheckAxis": 206},
}
"""Functions of NumPy that the code calls: their indices in its table, which are the same in NumPy 1 and 2."""
_NUMPY_VERSIONS = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface that have this table."""
_READABLE, _WRITABLE = 0x141, 0x541
"""NumPy's flags of C-contiguous, aligned arrays, and of those that can be written to."""

_CODE = """
@zeros = internal constant [64 x i64] zeroinitializer

define ptr @legged_entry_point(ptr %self, ptr %args, i64 %nargs, ptr %names) nounwind {
start:
  %item = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %kernel = call ptr @PyLong_AsVoidPtr(ptr %item)
  %inputs = LOAD %kernel Kernel.inputs
  %outputs = LOAD %kernel Kernel.outputs
  %arrays = POINTER %kernel Kernel.arrays
  %type_number = LOAD %kernel Kernel.type_number
  %type_code = trunc i64 %type_number to i32
  %dtype = POINTER %kernel Kernel.dtype
  %ndarray = POINTER %kernel Kernel.ndarray
  %bare_number = LOAD %kernel Kernel.is_bare
  %is_bare = icmp ne i64 %bare_number, 0
  %count = add i64 %inputs, %outputs
  %pointers = alloca ptr, i64 %count
  %numbers = alloca double, i64 %count
  %strides = alloca i64, i64 %count
  %shape = alloca [65 x i64]
  %packed = alloca ptr
  %states_at = alloca i64
  store i64 -1, ptr %states_at
  %has_inputs = icmp eq i64 %nargs, %inputs
  br i1 %has_inputs, label %input, label %fallback
input:
  %k = phi i64 [0, %start], [%k_next, %read]
  %is_left = icmp slt i64 %k, %inputs
  br i1 %is_left, label %read_input, label %results
read_input:
  %x_at = getelementptr ptr, ptr %args, i64 %k
  %x = load ptr, ptr %x_at, align 8
  %array = getelementptr [4 x i64], ptr %arrays, i64 %k
  %rank = LOAD %array Array.rank
  %stride_at = getelementptr i64, ptr %strides, i64 %k
  %is_scalar = icmp eq i64 %rank, 0
  br i1 %is_scalar, label %scalar, label %vector
vector:
  %data = call ptr @data(ptr %x, ptr %kernel, ptr %array, i32 READABLE, ptr %states_at, ptr %stride_at)
  %fits = icmp ne ptr %data, null
  br i1 %fits, label %read, label %fallback
scalar:
  %type = call ptr @PyObject_Type(ptr %x)
  call void @Py_DecRef(ptr %type)
  %float = POINTER %kernel Kernel.float
  %float64 = POINTER %kernel Kernel.float64
  %is_float = icmp eq ptr %type, %float
  %is_float64 = icmp eq ptr %type, %float64
  %is_number = or i1 %is_float, %is_float64
  br i1 %is_number, label %round, label %vector
round:
  %value = call double @PyFloat_AsDouble(ptr %x)
  %place = getelementptr double, ptr %numbers, i64 %k
  %is_double = icmp eq i64 %type_number, DOUBLE
  br i1 %is_double, label %double, label %single
double:
  store double %value, ptr %place, align 8
  br label %described
single:
  %rounded = fptrunc double %value to float
  store float %rounded, ptr %place, align 8
  br label %described
described:
  store i64 0, ptr %stride_at, align 8
  br label %read
read:
  %source = phi ptr [%data, %vector], [%place, %described]
  %source_at = getelementptr ptr, ptr %pointers, i64 %k
  store ptr %source, ptr %source_at, align 8
  %k_next = add i64 %k, 1
  br label %input
results:
  %states = load i64, ptr %states_at
  %is_batch = icmp ne i64 %states, -1
  %most = LOAD %kernel Kernel.most
  %is_small = icmp sle i64 %states, %most
  br i1 %is_small, label %outputs_of_all, label %fallback
outputs_of_all:
  %first_output = getelementptr [4 x i64], ptr %arrays, i64 %inputs
  %is_new = icmp eq ptr %names, null
  br i1 %is_new, label %new, label %named
named:
  %names_count = call i64 @PyTuple_Size(ptr %names)
  %is_one_name = icmp eq i64 %names_count, 1
  br i1 %is_one_name, label %check_name, label %fallback
check_name:
  %name = call ptr @PyTuple_GetItem(ptr %names, i64 0)
  %out = POINTER %kernel Kernel.out
  %is_out = icmp eq ptr %name, %out
  br i1 %is_out, label %check_out, label %fallback
check_out:
  %given_at = getelementptr ptr, ptr %args, i64 %nargs
  %given = load ptr, ptr %given_at, align 8
  br i1 %is_bare, label %given_results, label %check_tuple
check_tuple:
  %given_type = call ptr @PyObject_Type(ptr %given)
  %tuple_type = call ptr @PyObject_Type(ptr %self)
  call void @Py_DecRef(ptr %given_type)
  call void @Py_DecRef(ptr %tuple_type)
  %is_tuple = icmp eq ptr %given_type, %tuple_type
  br i1 %is_tuple, label %count_tuple, label %fallback
count_tuple:
  %given_count = call i64 @PyTuple_Size(ptr %given)
  %has_given = icmp eq i64 %given_count, %outputs
  br i1 %has_given, label %given_results, label %fallback
given_results:
  %g = phi i64 [0, %check_out], [0, %count_tuple], [%g_next, %use_out]
  %is_given = icmp slt i64 %g, %outputs
  br i1 %is_given, label %take_out, label %run_out
take_out:
  br i1 %is_bare, label %read_out, label %unpack_out
unpack_out:
  %unpacked = call ptr @PyTuple_GetItem(ptr %given, i64 %g)
  br label %read_out
read_out:
  %taken = phi ptr [%given, %take_out], [%unpacked, %unpack_out]
  %out_array = getelementptr [4 x i64], ptr %first_output, i64 %g
  %out_number = add i64 %inputs, %g
  %out_step_at = getelementptr i64, ptr %strides, i64 %out_number
  %out_data = call ptr @data(ptr %taken, ptr %kernel, ptr %out_array, i32 WRITABLE, ptr %states_at, ptr %out_step_at)
  %out_states = load i64, ptr %states_at
  %out_fits = icmp ne ptr %out_data, null
  br i1 %out_fits, label %compare_out, label %fallback
compare_out:
  %out_stride = load i64, ptr %out_step_at, align 8
  %out_is_many = icmp ne i64 %out_stride, 0
  %is_alike = icmp eq i1 %out_is_many, %is_batch
  %has_states = icmp eq i64 %out_states, %states
  %is_whole = and i1 %is_alike, %has_states
  br i1 %is_whole, label %check_overlap, label %fallback
check_overlap:
  %out_at = getelementptr ptr, ptr %pointers, i64 %out_number
  store ptr %out_data, ptr %out_at, align 8
  %is_one_result = select i1 %is_batch, i1 false, i1 %is_bare
  br i1 %is_one_result, label %use_out, label %compare_memory
compare_memory:
  %is_shared = call i1 @overlaps(ptr %pointers, ptr %kernel, i64 %out_number, i64 %states)
  br i1 %is_shared, label %fallback, label %use_out
use_out:
  %g_next = add i64 %g, 1
  br label %given_results
run_out:
  %out_bad = call i64 @run(ptr %kernel, ptr %pointers, ptr %strides, i64 %states)
  switch i64 %out_bad, label %fallback [i64 0, label %return_out i64 -1, label %fail]
return_out:
  call void @Py_IncRef(ptr %given)
  ret ptr %given
new:
  br i1 %is_bare, label %output, label %pack
pack:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %has_tuple = icmp ne ptr %tuple, null
  br i1 %has_tuple, label %output, label %fail
output:
  %j = phi i64 [0, %new], [0, %pack], [%j_next, %made]
  %whole = phi ptr [null, %new], [%tuple, %pack], [%whole_next, %made]
  %is_output = icmp slt i64 %j, %outputs
  br i1 %is_output, label %make, label %run
make:
  %result = getelementptr [4 x i64], ptr %first_output, i64 %j
  %number = add i64 %inputs, %j
  %result_rank = LOAD %result Array.rank
  %result_stride_at = getelementptr i64, ptr %strides, i64 %number
  %has_no_axes = icmp eq i64 %result_rank, 0
  %is_one_state = xor i1 %is_batch, true
  %is_scalar_result = and i1 %has_no_axes, %is_one_state
  br i1 %is_scalar_result, label %make_scalar, label %make_array
make_scalar:
  %scalar_place = getelementptr double, ptr %numbers, i64 %number
  br label %made
make_array:
  %result_shape = POINTER %result Array.shape
  %result_size = LOAD %result Array.size
  %word = LOAD %kernel Kernel.word
  %result_stride = mul i64 %result_size, %word
  store i64 %states, ptr %shape, align 8
  %inner_shape = getelementptr i64, ptr %shape, i64 1
  %shape_bytes = mul i64 %result_rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %inner_shape, ptr align 8 %result_shape, i64 %shape_bytes, i1 false)
  %lengths = select i1 %is_batch, ptr %shape, ptr %inner_shape
  %one_more = zext i1 %is_batch to i64
  %all_axes = add i64 %result_rank, %one_more
  %axes = trunc i64 %all_axes to i32
  %new_array = call ptr @PyArray_New(ptr %ndarray, i32 %axes, ptr %lengths, i32 %type_code, DEFAULTS)
  %has_array = icmp ne ptr %new_array, null
  br i1 %has_array, label %keep_array, label %fail_with
keep_array:
  %new_data = call ptr @PyArray_GetPtr(ptr %new_array, ptr @zeros)
  store i64 %result_stride, ptr %result_stride_at, align 8
  br i1 %is_bare, label %made, label %pack_array
pack_array:
  %packed_array = call i32 @PyTuple_SetItem(ptr %whole, i64 %j, ptr %new_array)
  br label %made
made:
  %whole_next = phi ptr [%whole, %make_scalar], [%new_array, %keep_array], [%whole, %pack_array]
  %target = phi ptr [%scalar_place, %make_scalar], [%new_data, %keep_array], [%new_data, %pack_array]
  %target_at = getelementptr ptr, ptr %pointers, i64 %number
  store ptr %target, ptr %target_at, align 8
  %j_next = add i64 %j, 1
  br label %output
run:
  %bad = call i64 @run(ptr %kernel, ptr %pointers, ptr %strides, i64 %states)
  switch i64 %bad, label %not_finite [i64 0, label %finite i64 -1, label %fail_with]
finite:
  br i1 %is_batch, label %convert, label %scalars
not_finite:
  call void @Py_DecRef(ptr %whole)
  br label %fallback
scalars:
  %i = phi i64 [0, %finite], [%i_next, %next_scalar]
  %is_result = icmp slt i64 %i, %outputs
  br i1 %is_result, label %check_scalar, label %convert
check_scalar:
  %entry = getelementptr [4 x i64], ptr %first_output, i64 %i
  %entry_rank = LOAD %entry Array.rank
  %is_scalar_entry = icmp eq i64 %entry_rank, 0
  br i1 %is_scalar_entry, label %new_scalar, label %next_scalar
new_scalar:
  %position = add i64 %inputs, %i
  %scalar_at = getelementptr double, ptr %numbers, i64 %position
  %object = call ptr @PyArray_Scalar(ptr %scalar_at, ptr %dtype, ptr null)
  %has_object = icmp ne ptr %object, null
  br i1 %has_object, label %keep_scalar, label %fail_with_scalar
keep_scalar:
  br i1 %is_bare, label %return_scalar, label %pack_scalar
return_scalar:
  ret ptr %object
pack_scalar:
  %packed_scalar = call i32 @PyTuple_SetItem(ptr %whole, i64 %i, ptr %object)
  br label %next_scalar
next_scalar:
  %i_next = add i64 %i, 1
  br label %scalars
convert:
  %rebuild = POINTER %kernel Kernel.rebuild
  %is_converted = icmp ne ptr %rebuild, null
  br i1 %is_converted, label %call_rebuild, label %return_new
call_rebuild:
  store ptr %whole, ptr %packed, align 8
  %rebuilt = call ptr @PyObject_Vectorcall(ptr %rebuild, ptr %packed, i64 1, ptr null)
  call void @Py_DecRef(ptr %whole)
  ret ptr %rebuilt
return_new:
  ret ptr %whole
fail_with_scalar:
  br label %fail_with
fail_with:
  call void @Py_DecRef(ptr %whole)
  br label %fail
fail:
  ret ptr null
fallback:
  %general = POINTER %kernel Kernel.fallback
  %answer = call ptr @PyObject_Vectorcall(ptr %general, ptr %args, i64 %nargs, ptr %names)
  ret ptr %answer
}
"""


def assembly() -> str:
    """Return the LLVM module, without abbreviations; see `ir_writer.with_entries`."""
    code = with_entries(_CODE + execution.CODE + array_arguments.CODE + _NOT_LOADED, {"Kernel": KERNEL, "Array": ARRAY})
    words = {"READABLE": _READABLE, "WRITABLE": _WRITABLE, "DOUBLE": np.dtype(float).num}
    words |= {"DEFAULTS": "ptr null, ptr null, i32 0, i32 0, ptr null"}
    return re.sub("|".join(words), lambda match: str(words[match[0]]), code)


@cache
def is_supported() -> bool:
    """Return whether the entry point can be used: CPython with its interpreter lock, and a known table of NumPy."""
    is_known = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    return is_known and ctypes.sizeof(ctypes.c_void_p) == 8 and _numpy_version() in _NUMPY_VERSIONS


def _numpy_version() -> int:
    return ctypes.PYFUNCTYPE(ctypes.c_uint)(numpy_function(0))()


def numpy_function(index: int) -> int:
    """Return the address of a function in NumPy's table of C functions."""
    core: Any = getattr(np, "_core", None) or np.core
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = get(core._multiarray_umath._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + 8 * index).value or 0


def supports(graph: Graph) -> bool:
    """Return whether the entry point can handle calls of a graph: it has results, and arguments of up to two axes."""
    return bool(graph.outputs) and all(len(shape) < 3 for _, shape in graph.inputs)
