# SPDX-License-Identifier: BSD-3-Clause
"""Compile CUDA C++ without a device, through the NVRTC that pip installs."""

import ctypes
import importlib.util
from functools import cache
from pathlib import Path

PACKAGE = "nvidia.cuda_nvrtc"


@cache
def library():
    """Return the NVRTC library, by the path its package has."""
    (folder,) = importlib.util.find_spec(PACKAGE).submodule_search_locations
    paths = [*Path(folder).glob("lib/libnvrtc.so.*"), *Path(folder).glob("bin/nvrtc64_*_0.dll")]
    return ctypes.CDLL(str(min(paths)))


@cache
def architectures():
    """Return the compute capabilities that this NVRTC compiles for, of 80, 90 and 100."""
    count = ctypes.c_int()
    library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    found = (ctypes.c_int * count.value)()
    library().nvrtcGetSupportedArchs(found)
    return sorted({80, 90, 100} & set(found))


def compile_cuda(source, architecture, options=()):
    """Compile a source for one architecture; return whether it compiled, and the log."""
    nvrtc, program = library(), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None)
    flags = [f"--gpu-architecture=sm_{architecture}", "--std=c++17", *options]
    argv = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
    status = nvrtc.nvrtcCompileProgram(program, len(flags), argv)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status == 0, log.value.decode()
