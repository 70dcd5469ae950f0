/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/diagnose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "sandbox/probe.h"

/* --- facts of the host --- */

/* Reads the first line of a small file into buf; "" if the file cannot be read. */
static const char *diagnose_read_line(const char *path, char *buf, size_t size) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

        buf[n < 0 ? 0 : n] = '\0';
        buf[strcspn(buf, "\n")] = '\0';
        return buf;
}

static bool setting_is(const char *path, const char *value) {
        char buf[64];

        return streq(diagnose_read_line(path, buf, sizeof(buf)), value);
}

/* Whether this process already has a seccomp filter, such as a container's. */
static bool under_seccomp(void) {
        char line[256];
        bool found = false;
        FILE *file = fopen("/proc/self/status", "re");

        while (file && fgets(line, sizeof(line), file))
                found |= str_starts(line, "Seccomp:\t2");
        if (file)
                (void)fclose(file);
        return found;
}

/* Whether this process is in a sandbox of holt. The name of process 1 shows that, because no
 * process inside can change it. */
static bool inside_holt(void) {
        return setting_is("/proc/1/cmdline", "holt-init") && under_seccomp();
}

static bool apparmor_restricts(void) {
        return setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1");
}

static bool debian_forbids(void) {
        return setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0");
}

static bool no_user_namespaces(void) {
        return setting_is("/proc/sys/user/max_user_namespaces", "0");
}

static bool diagnose_always(void) {
        return true;
}

/* --- reasons, the most specific first --- */

typedef struct Reason {
        unsigned layers; /* LAYER_BITs. */
        int errnum;      /* 0 for any errno. */
        bool (*holds)(void);
        const char *why, *cure;
} Reason;

#define NAMESPACES                                                                                 \
        (LAYER_BIT(LAYER_USER) | LAYER_BIT(LAYER_MOUNT) | LAYER_BIT(LAYER_PID) |                   \
         LAYER_BIT(LAYER_NET) | LAYER_BIT(LAYER_IPC) | LAYER_BIT(LAYER_UTS) |                      \
         LAYER_BIT(LAYER_CGROUP))

/* Limits of namespaces(7). A namespace counts against its creator's limit in every enclosing user
 * namespace. */
/* Different versions of clang-format disagree on this macro. */
/* clang-format off */
#define NAMESPACE_LIMIT(layer, kind)                                                               \
        {                                                                                          \
                LAYER_BIT(layer), ENOSPC, diagnose_always,                                         \
                        "the limit of these namespaces is reached (user.max_" kind                 \
                        "_namespaces), or they are "                                               \
                        "nested too deeply",                                                       \
                        "Raise it, here and in the containers around: sudo sysctl -w "             \
                        "user.max_" kind "_namespaces=15000"                                       \
        }
/* clang-format on */

static const Reason reasons[] = {
        { NAMESPACES | LAYER_BIT(LAYER_PROC) | LAYER_BIT(LAYER_DEV) | LAYER_BIT(LAYER_NOTIFY), 0,
          inside_holt, "this is already a sandbox of holt, and holt does not nest",
          "Run the command directly: the existing sandbox confines it\nPass whatever else it needs "
          "to the outer holt run" },
        { NAMESPACES, 0, apparmor_restricts,
          "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1)",
          "Install the profile that comes with holt:\n"
          "sudo install -m 644 contrib/apparmor/holt /etc/apparmor.d/ && "
          "sudo apparmor_parser -r /etc/apparmor.d/holt" },
        { LAYER_BIT(LAYER_USER), 0, debian_forbids,
          "only root may use user namespaces (kernel.unprivileged_userns_clone = 0)",
          "sudo sysctl -w kernel.unprivileged_userns_clone=1\n"
          "To keep it: put the line into /etc/sysctl.d/50-userns.conf" },
        { LAYER_BIT(LAYER_USER), 0, no_user_namespaces,
          "user namespaces are forbidden (user.max_user_namespaces = 0)",
          "sudo sysctl -w user.max_user_namespaces=15000\n"
          "To keep it: put the line into /etc/sysctl.d/50-userns.conf" },
        NAMESPACE_LIMIT(LAYER_USER, "user"),
        NAMESPACE_LIMIT(LAYER_MOUNT, "mnt"),
        NAMESPACE_LIMIT(LAYER_PID, "pid"),
        NAMESPACE_LIMIT(LAYER_NET, "net"),
        NAMESPACE_LIMIT(LAYER_IPC, "ipc"),
        NAMESPACE_LIMIT(LAYER_UTS, "uts"),
        NAMESPACE_LIMIT(LAYER_CGROUP, "cgroup"),
        { NAMESPACES, EUSERS, diagnose_always, "user namespaces are nested deeper than 32 levels",
          "Run holt in an outer namespace" },
        { NAMESPACES, EPERM, under_seccomp, "a container's seccomp profile forbids it",
          "Let the container make namespaces, for example:\ndocker run --security-opt "
          "seccomp=unconfined --security-opt apparmor=unconfined --security-opt "
          "systempaths=unconfined ..." },
        { NAMESPACES, EINVAL, diagnose_always, "this kernel was built without such namespaces",
          "Use a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, "
          "CONFIG_UTS_NS and CONFIG_CGROUPS" },
        { NAMESPACES, EPERM, diagnose_always,
          "this process may not make namespaces (a chroot, or a container)",
          "Run holt outside of the chroot; in a container, allow user namespaces" },
        { LAYER_BIT(LAYER_MOUNT), ENOSYS, diagnose_always,
          "the kernel is older than 5.12, or a container's seccomp profile hides the mount calls",
          "Use Linux 5.13 or later; in a container: --security-opt seccomp=unconfined" },
        { LAYER_BIT(LAYER_PROC), EPERM, diagnose_always,
          "parts of this host's /proc are covered, as in most containers, so the kernel allows no "
          "new /proc",
          "Start the container with --security-opt systempaths=unconfined (docker) or "
          "--security-opt unmask=ALL (podman)\nOr run without /proc inside: --allow-degraded "
          "proc" },
        { LAYER_BIT(LAYER_IDMAP), 0, diagnose_always,
          "if root runs holt, it takes an unprivileged uid and needs id-mapped mounts, which this "
          "file system or container refuses",
          "Run holt as an ordinary user, or keep the directory on ext4, xfs or btrfs (tmpfs: since "
          "Linux 6.3)\nOr run the command with the uid of the workspace's owner: --allow-degraded "
          "idmap" },
        { LAYER_BIT(LAYER_LANDLOCK), 0, diagnose_always,
          "the policy requires Landlock (layers.landlock)",
          "Boot a kernel 5.19 or later with lsm=landlock,... on its command line\nOr use Landlock "
          "only if the kernel has it: --landlock auto" },
        { LAYER_BIT(LAYER_NOTIFY), EBUSY, diagnose_always,
          "another program already listens for this process's system calls (a nested sandbox)",
          "Run without reports of denied calls, which stay denied: --allow-degraded notify" },
        { LAYER_BIT(LAYER_SECCOMP), 0, diagnose_always,
          "this kernel or container refuses seccomp filters",
          "Use a kernel with CONFIG_SECCOMP_FILTER" },
};

/* --- the caller's limits, which any call can reach --- */

static const struct {
        int errnum;
        const char *cure;
} limits[] = {
        { EMFILE, "Your limit of open files is too low for holt itself: ulimit -n 1024 raises it, "
                  "if the hard limit allows that. The limit of the command is --open-files N." },
        { ENFILE,
          "The host has reached its limit of open files: sysctl fs.file-max shows the limit." },
        { EFBIG,
          "Your limit of file sizes is too low for holt's own files: ulimit -f unlimited raises "
          "it, if the hard limit allows that. The limit of the command is --file-size SIZE." },
};

/* Explains an error that comes from one of the caller's limits. The host then refuses no layer,
 * even if the error names one. */
static bool diagnose_limit(Error *error) {
        for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
                if (limits[i].errnum != error->errnum || error->cure[0])
                        continue;
                error->kind = ERROR_SETUP;
                (void)error_cure(error, 0, "%s", limits[i].cure);
                return true;
        }
        return false;
}

/* Explains an error inside a sandbox of holt, whose filter answers openat2 with ENOSYS before any
 * layer is made. */
static bool diagnose_nested(Error *error) {
        if (error->errnum != ENOSYS || error->kind == ERROR_LAYER || error->cure[0] ||
            !inside_holt())
                return false;
        (void)error_cure(error, 0, "Reason: %s.\n%s", reasons[0].why, reasons[0].cure);
        return true;
}

int diagnose(Error *error) {
        if (diagnose_nested(error))
                return -error->errnum;
        if (!diagnose_limit(error) && error->kind == ERROR_LAYER)
                return diagnose_layer(error);
        return error->errnum > 0 ? -error->errnum : -EINVAL;
}

/* Sets the cure. A reason that mentions --allow-degraded itself gets no general advice about it. */
static int cure_by(const Reason *reason, Error *error, int ret) {
        const LayerInfo *layer = &layer_table[error->layer];

        if (layer->degradable && reason->holds != inside_holt &&
            !strstr(reason->cure, "--allow-degraded"))
                return error_cure(error, ret,
                                  "Reason: %s.\n%s\nOr run without it: --allow-degraded %s",
                                  reason->why, reason->cure, layer->name);
        return error_cure(error, ret, "Reason: %s.\n%s", reason->why, reason->cure);
}

int diagnose_layer(Error *error) {
        /* A refusal may have no errno, but must not look like success. */
        const int errnum = error->errnum, ret = errnum > 0 ? -errnum : -EINVAL;
        size_t used = strlen(error->text);

        if (error->cure[0])
                return ret;
        for (size_t i = 0; i < ELEMENTSOF(reasons); i++) {
                const Reason *reason = &reasons[i];

                if (!(reason->layers & LAYER_BIT((unsigned)error->layer)) ||
                    (reason->errnum && reason->errnum != errnum) || !reason->holds())
                        continue;
                (void)snprintf(error->text + used, sizeof(error->text) - used, " [layer %s]",
                               layer_table[error->layer].name);
                return cure_by(reason, error, ret);
        }
        return error_cure(error, ret, "holt doctor tests every layer, and says how to fix it");
}

int diagnose_clone(int errnum, unsigned wanted_layers, Error *reterr) {
        Error error;
        int ret = error_set(&error, ERROR_SETUP, errnum, "cannot make a sandbox");

        if (diagnose_limit(&error)) {
                if (reterr)
                        *reterr = error;
                return ret;
        }
        for (Layer layer = LAYER_USER; layer <= LAYER_CGROUP; layer++) {
                const char *step;
                int r;

                if (!(wanted_layers & LAYER_BIT(layer)))
                        continue;
                r = probe_layer(layer, &step);
                if (r == 0)
                        continue;
                error_layer(&error, (int)layer, -r, "cannot make a %s namespace",
                            layer_table[layer].name);
                diagnose_layer(&error);
                if (reterr)
                        *reterr = error;
                return r;
        }
        return error_set(reterr, ERROR_SETUP, errnum, "cannot make a sandbox");
}
