// SPDX-License-Identifier: GPL-2.0-or-later
/* dlopen(3) without dlclose(3): threads of a library may still run. */
#include "symbols/base/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_find(const char *soname, void *functions, const struct library_function *list,
		  size_t nr)
{
	void *handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; handle && i < nr; i++) {
		void *function = dlsym(handle, list[i].name);

		if (!function)
			return false;
		memcpy((char *)functions + list[i].at, &function, sizeof(function));
	}
	return handle;
}
