# SPDX-License-Identifier: BSD-3-Clause
"""Settings shared by all tests."""

import hypothesis

# The first call of a numba function compiles it: time limits of single examples mean nothing here.
hypothesis.settings.register_profile("sklearn_mgk", deadline=None, print_blob=True)
hypothesis.settings.load_profile("sklearn_mgk")
