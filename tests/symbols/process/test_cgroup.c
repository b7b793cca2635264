// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /proc/PID/cgroup, and the names that container tools give.
 * Live: some parts need root.
 */
#include "symbols/process/details.c"

#include "symbols/base/base.h"

#include "tests/fake_root.h"

#include <unistd.h>

#define ID64 "3fa1c2d4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeeff00"

static const char *path_of(const char *text)
{
	static char out[512];
	const char *path;
	size_t size;

	if (!cgroup_path(text, strlen(text), &path, &size))
		return "none";
	snprintf(out, sizeof(out), "%.*s", (int)size, path);
	return out;
}

TEST(test_path)
{
	assert_string_equal(path_of("0::/system.slice/api.service\n"), "/system.slice/api.service");
	/* Hybrid: the unified hierarchy is empty, systemd's has the path. */
	assert_string_equal(path_of("5:memory:/elsewhere\n1:name=systemd:/docker/abc\n0::/\n"),
			    "/docker/abc");
	assert_string_equal(path_of("0::/\n"), "/");
	assert_string_equal(path_of("0::/a:b/c\n"), "/a:b/c");
	assert_string_equal(path_of(""), "none");
	assert_string_equal(path_of("0::/cut off"), "none");
	assert_string_equal(path_of("nonsense\n::\n0::relative\n"), "none");
}

#define DOCKER "/var/lib/docker/containers/" ID64 "/config.v2.json"
#define PODMAN "/var/lib/containers/storage/overlay-containers/containers.json"
#define OTHER  "00000000000000000000000000000000000000000000000000000000000000aa"

/* Get the name again, as some time later. */
static const char *name_of(const char *root, const char *id)
{
	static struct container_names names;

	memset(&names, 0, sizeof(names));
	return container_name(&names, root, id, 1);
}

/* By the files of docker and podman; of a text that is no name, the id remains. */
TEST(test_container_names)
{
	static const char *const bad[] = {
		"{\"Config\":{\"Name\":\"/inner\"}}",
		"{\"Name\":\"/a\\u001b[2J\"}",
		"{\"Name\":\"/two words\"}",
		"{\"Name\":\"/cut",
		"{\"Name\":\"\"}",
		"{\"a\\\"Name\\\":\\\"/quoted\":1}",
		("{\"Name\":\"/"
		 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}"),
		"\"",
		"",
	};
	char root[] = "/tmp/proftop-names-XXXXXX";
	struct container_names names = { .next = 0 };

	assert_non_null(mkdtemp(root));
	assert_string_equal(name_of(root, ID64), "");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fake_put(root, DOCKER, bad[i]);
		assert_string_equal(name_of(root, ID64), "");
	}
	fake_put(root, DOCKER,
		 "{\"State\":{\"Name\":\"/no\"},\"Args\":[\"}\"],\"Name\":\"/web_1.a-b\"}");
	assert_string_equal(name_of(root, ID64), "web_1.a-b");
	fake_put(root, PODMAN,
		 "[{\"id\":\"" OTHER "\",\"image\":\"x\"},"
		 "{\"id\":\"" ID64 "\",\"names\":[\"db\"]}]");
	assert_string_equal(name_of(root, OTHER), "");
	assert_string_equal(name_of(root, ID64), "web_1.a-b");
	fake_put(root, DOCKER, "{}");
	assert_string_equal(name_of(root, ID64), "db");
	/* Kept for ten seconds. */
	assert_string_equal(container_name(&names, root, ID64, 1), "db");
	fake_put(root, DOCKER, "{\"Name\":\"/renamed\"}");
	assert_string_equal(container_name(&names, root, ID64, 9000000000), "db");
	assert_string_equal(container_name(&names, root, ID64, 11000000000), "renamed");
	assert_int_equal(names.next, 1);
	fake_remove(root);
}

/* Make a file of a name with spaces behind it, of @size bytes in all. */
static void put_large(const char *root, size_t size)
{
	static const char name[] = "{\"Name\":\"/large\"}";
	char *text = malloc(size + 1);

	memset(text, ' ', size);
	memcpy(text, name, sizeof(name) - 1);
	text[size] = '\0';
	fake_put(root, DOCKER, text);
	free(text);
}

/* Only a file of root or of this user, of 1 MiB at most, is read. */
TEST(test_container_files)
{
	char root[] = "/tmp/proftop-names-XXXXXX", path[256];

	assert_non_null(mkdtemp(root));
	put_large(root, 1 << 20);
	assert_string_equal(name_of(root, ID64), "large");
	put_large(root, (1 << 20) + 1);
	assert_string_equal(name_of(root, ID64), "");
	fake_put(root, DOCKER, "{\"Name\":\"/web\"}");
	assert_string_equal(name_of(root, ID64), "web");
	snprintf(path, sizeof(path), "%s%s", root, DOCKER);
	if (!geteuid()) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_string_equal(name_of(root, ID64), "");
	}
	fake_remove(root);
}

TEST(test_container)
{
	static const struct {
		const char *path, *want;
	} cases[] = {
		{ "/system.slice/docker-" ID64 ".scope", "docker:3fa1c2d4e5f6" },
		{ "/docker/" ID64, "docker:3fa1c2d4e5f6" },
		{ "/docker/" ID64 "/init.scope", "docker:3fa1c2d4e5f6" },
		{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID64 ".scope/"
		  "containe"
		  "r",
		  "podman@1000:3fa1c2d4e5f6" },
		{ "/libpod_parent/libpod-" ID64, "podman:3fa1c2d4e5f6" },
		{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice/"
		  "cri-containerd-" ID64 ".scope",
		  "k8s:3fa1c2d4e5f6" },
		{ "/kubepods/besteffort/pod1234-5678/" ID64, "k8s:3fa1c2d4e5f6" },
		{ "/kubepods.slice/crio-" ID64 ".scope", "k8s:3fa1c2d4e5f6" },
		{ "/machine.slice/systemd-nspawn@build\\x2dbox.service/payload", "nspawn:build-"
										 "box" },
		{ "/machine.slice/machine-debian.scope", "machine:debian" },
		{ "/lxc.payload.web/system.slice/cron.service", "lxc:web" },
		{ "/lxc/web", "lxc:web" },
		{ "/ecs/" ID64, "container:3fa1c2d4e5f6" },
		{ "/system.slice/api.service", "" },
		{ "/user.slice/user-1000.slice/session-3.scope", "" },
		/* Names that only begin so. */
		{ "/system.slice/docker.service", "" },
		{ "/system.slice/docker-.scope", "" },
		{ "/system.slice/docker-nothex.scope", "" },
		{ "/", "" },
		{ "", "" },
		{ "////", "" },
	};
	char out[CGROUP_CONTAINER_MAX];
	const char *id;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t n = cgroup_container(cases[i].path, strlen(cases[i].path), out, &id);

		assert_string_equal(out, cases[i].want);
		assert_int_equal(n, strlen(out));
	}
}

#define USER_PATH "/user.slice/user-1001.slice/user@1001.service/"

/* Users choose names below their systemd, and root of a container below that container. */
TEST(test_chosen_names)
{
	static const struct {
		const char *path, *want;
		bool id; /* its name may be shown */
	} cases[] = {
		{ USER_PATH "docker-" ID64 ".scope", "", false },
		{ USER_PATH "app.slice/docker/" ID64, "", false },
		{ USER_PATH ID64, "", false },
		{ USER_PATH "lxc/web", "", false },
		{ USER_PATH "lxc.payload.web", "", false },
		{ USER_PATH "machine-web.scope", "", false },
		{ USER_PATH "user@0.service/libpod-" ID64 ".scope", "podman@1001:3fa1c2d4e5f6",
		  false },
		{ "/user.slice/user@99999999999999.service/libpod-" ID64 ".scope",
		  "podman@9999999999:3fa1c2d4e5f6", false },
		{ "/docker/" ID64 "/docker/" OTHER, "docker:3fa1c2d4e5f6", true },
		{ "/system.slice/docker-" ID64 ".scope/user@0.service/libpod-" OTHER ".scope",
		  "docker:3fa1c2d4e5f6", true },
		{ "/lxc.payload.web/system.slice/docker-" ID64 ".scope", "lxc:web", false },
		{ "/system.slice/docker-3fa1c2d4e5f6.scope/" ID64, "docker:3fa1c2d4e5f6", false },
	};
	char out[CGROUP_CONTAINER_MAX];
	const char *id;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cgroup_container(cases[i].path, strlen(cases[i].path), out, &id);
		assert_string_equal(out, cases[i].want);
		assert_int_equal(id != NULL, cases[i].id);
		if (id)
			assert_ptr_equal(id, strstr(cases[i].path, ID64));
	}
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}
