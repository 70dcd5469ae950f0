/* SPDX-License-Identifier: Apache-2.0 */
/* holt files: the files of a session, as its commands see them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/glob.h"
#include "base/path-text.h"
#include "base/paths.h"
#include "cli/ask.h"
#include "cli/fail.h"
#include "cli/operands.h"
#include "cli/transfer.h"
#include "cli/verbs.h"
#include "files/files.h"
#include "streams/stdio.h"

typedef struct FilesOptions {
        bool json, recursive, parents, replace;
} FilesOptions;

static const Option files_options[] = {
        { "--json", NULL, "print the result as JSON", OPTION_BOOL, offsetof(FilesOptions, json),
          NULL },
        { "--recursive", NULL, "for ls, rm, cp: include everything below", OPTION_BOOL,
          offsetof(FilesOptions, recursive), NULL },
        { "-r", NULL, "short for --recursive", OPTION_BOOL, offsetof(FilesOptions, recursive),
          NULL },
        { "--parents", NULL, "for mkdir: create missing parents, and accept an existing directory",
          OPTION_BOOL, offsetof(FilesOptions, parents), NULL },
        { "-p", NULL, "short for --parents", OPTION_BOOL, offsetof(FilesOptions, parents), NULL },
        { "--replace", NULL, "for mv, cp: replace an existing file", OPTION_BOOL,
          offsetof(FilesOptions, replace), NULL },
};

typedef struct FilesCommand {
        FilesOptions options;
        RpcClient *client;
        const char *session;
        const char *const *operands; /* borrowed: the operands after the verb; NULL-terminated */
} FilesCommand;

static int files_verb_print_json(JsonWriter *w, Error *reterr) {
        int r = ask_print_document(w, reterr);

        json_write_clear(w);
        return r;
}

/* --- ls, stat --- */

/* Formats the mode as ls(1) does: "drwxr-xr-x". */
static const char *mode_text(const JsonValue *entry, char buf[11]) {
        static const char *const types[] = { "file", "directory", "link" };
        static const char all[] = "rwxrwxrwx", letters[] = "-dl";
        const char *type = json_member_string(entry, "type");
        const uint64_t mode = json_member_uint(entry, "mode");

        (void)strcpy(buf, "?---------");
        for (size_t i = 0; type && i < ELEMENTSOF(types); i++)
                if (streq(type, types[i]))
                        buf[0] = letters[i];
        for (size_t i = 0; i < 9; i++)
                if (mode & (0400U >> i))
                        buf[i + 1] = all[i];
        return buf;
}

static void files_verb_print_entry(const JsonValue *entry, const char *name) {
        const time_t seconds = (time_t)(json_member_uint(entry, "modified_ms") / 1000);
        const char *target = json_member_string(entry, "target");
        char mode[11], date[32] = "", visible[1024], leads[1024];
        struct tm tm;

        if (localtime_r(&seconds, &tm))
                (void)strftime(date, sizeof(date), "%Y-%m-%d %H:%M", &tm);
        (void)printf("%s %12" PRIu64 " %s %s%s%s\n", mode_text(entry, mode),
                     json_member_uint(entry, "size"), date,
                     str_visible(name, visible, sizeof(visible)), target ? " -> " : "",
                     target ? str_visible(target, leads, sizeof(leads)) : "");
}

/* Bytes that are not UTF-8 are shown as \\xNN. */
static void print_named(const JsonValue *entry) {
        _cleanup_free_ char *name = transfer_entry_name(entry);

        files_verb_print_entry(entry, name ? name : json_member_string(entry, "name"));
}

/* Tells on stderr that the listing is incomplete. */
static void tell_missed(const JsonValue *missed) {
        _cleanup_free_ char *name = missed ? transfer_entry_name(missed) : NULL;
        char quoted[1024];

        if (missed)
                (void)fprintf(stderr,
                              "holt: the list is incomplete: cannot read directory \"%s\" (%s)\n",
                              name ? str_quote(name, quoted, sizeof(quoted)) : "",
                              json_member_string(missed, "errno"));
}

static void show_page(const FilesCommand *command, const JsonValue *result, JsonWriter *w) {
        for (const JsonValue *entry = json_first(json_member(result, "entries")); entry;
             entry = json_next(entry))
                if (command->options.json)
                        json_copy(w, NULL, entry);
                else
                        print_named(entry);
}

/* Describes the file itself, even if it is a link. */
static int stat_file(const FilesCommand *command, const char *path, RpcMessage *ret,
                     Error *reterr) {
        JsonWriter params = transfer_path(path);

        json_write_bool(&params, "follow", false);
        return transfer_call(command->client, "files.stat", &params, FD_NONE, ret, reterr);
}

/* Lists a file itself, as ls(1) does. */
static int list_file(const FilesCommand *command, const char *path, JsonWriter *w, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        int r = stat_file(command, path, &message, reterr);

        if (r < 0)
                return r;
        if (!command->options.json) {
                files_verb_print_entry(message.result, path);
                return 0;
        }
        json_write_object(w, NULL);
        json_write_string(w, "name", path);
        for (const JsonValue *v = json_first(message.result); v; v = json_next(v))
                json_copy(w, json_key(v), v);
        json_write_end(w);
        return 0;
}

static int files_verb_list(const FilesCommand *command, const char *path, JsonWriter *w,
                           Error *reterr) {
        _cleanup_free_ char *after = NULL;

        for (;;) {
                _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
                JsonWriter params = transfer_path(path);
                const char *next;
                int r;

                json_write_bool(&params, "recursive", command->options.recursive);
                json_write_uint(&params, "limit", FILES_LIST_MAX);
                if (after)
                        json_write_string(&params, "after", after);
                r = transfer_call(command->client, "files.list", &params, FD_NONE, &message,
                                  reterr);
                if (r == -ENOTDIR)
                        return list_file(command, path, w, reterr);
                if (r < 0)
                        return r;
                show_page(command, message.result, w);
                tell_missed(json_member(message.result, "missed"));
                next = json_member_string(message.result, "next");
                if (!next)
                        return 0;
                free(after);
                after = strdup(next);
                if (!after)
                        return error_oom(reterr);
        }
}

static int files_verb_do_ls(FilesCommand *command, Error *reterr) {
        const char *path = command->operands[0] ? command->operands[0] : ".";
        JsonWriter w = { .pretty = true };
        int r;

        json_write_object(&w, NULL);
        json_write_array(&w, "entries");
        r = files_verb_list(command, path, &w, reterr);
        json_write_end(&w);
        json_write_end(&w);
        if (r == 0 && command->options.json)
                return files_verb_print_json(&w, reterr);
        json_write_clear(&w);
        return r;
}

static int do_stat(FilesCommand *command, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage message = RPC_MESSAGE_NONE;
        JsonWriter w = { .pretty = true };
        int r = stat_file(command, command->operands[0], &message, reterr);

        if (r < 0)
                return r;
        if (!command->options.json) {
                files_verb_print_entry(message.result, command->operands[0]);
                return 0;
        }
        json_copy(&w, NULL, message.result);
        return files_verb_print_json(&w, reterr);
}

/* --- contents --- */

static int do_cat(FilesCommand *command, Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && command->operands[i]; i++)
                r = transfer_get(command->client, command->operands[i], "-", reterr);
        return r;
}

static int do_get(FilesCommand *command, Error *reterr) {
        const char *path = command->operands[0], *file = command->operands[1];
        _cleanup_free_ char *name = transfer_name(path);

        if (!name)
                return error_oom(reterr);
        return transfer_get(command->client, path, file ? file : name, reterr);
}

static int do_put(FilesCommand *command, Error *reterr) {
        const char *file = command->operands[0], *path = command->operands[1];
        _cleanup_free_ char *target = NULL;
        int r = transfer_put_target(command->client, path ? path : "", file,
                                    "holt files NAME put - PATH", &target, reterr);

        return r < 0 ? r : transfer_put(command->client, file, target, reterr);
}

/* --- the tree --- */

/* Calls the method for each operand, with one flag. */
static int call_for_each(FilesCommand *command, const char *method, const char *flag, bool value,
                         Error *reterr) {
        int r = 0;

        for (size_t i = 0; r == 0 && command->operands[i]; i++) {
                JsonWriter params = transfer_path(command->operands[i]);

                json_write_bool(&params, flag, value);
                r = transfer_call(command->client, method, &params, FD_NONE, NULL, reterr);
        }
        return r;
}

static int do_mkdir(FilesCommand *command, Error *reterr) {
        return call_for_each(command, "files.mkdir", "make_parents", command->options.parents,
                             reterr);
}

/* Replaces the server's cure, which names a parameter, by one that names an option. */
static int say_option(int r, const char *option, Error *reterr) {
        return error_cure(reterr, r, "Use %s.", option);
}

static int files_verb_do_rm(FilesCommand *command, Error *reterr) {
        int r = call_for_each(command, "files.remove", "recursive", command->options.recursive,
                              reterr);

        return r == -ENOTEMPTY ? say_option(r, "--recursive", reterr) : r;
}

static int move_or_copy(FilesCommand *command, const char *method, bool copy, Error *reterr) {
        _cleanup_(rpc_message_clear) RpcMessage answer = RPC_MESSAGE_NONE;
        const char *from = command->operands[0];
        _cleanup_free_ char *target = NULL;
        uint64_t left_out;
        JsonWriter params = { 0 };
        int r = transfer_target(command->client, command->operands[1], from, &target, reterr);

        if (r < 0)
                return r;
        json_write_object(&params, NULL);
        json_write_path(&params, "from", from);
        json_write_path(&params, "to", target);
        json_write_bool(&params, "replace", command->options.replace);
        if (copy)
                json_write_bool(&params, "recursive", command->options.recursive);
        r = transfer_call(command->client, method, &params, FD_NONE, &answer, reterr);
        left_out = r == 0 && copy ? json_member_uint(answer.result, "left_out") : 0;
        if (left_out > 0)
                (void)fprintf(stderr,
                              "holt: special files left out (FIFOs, sockets, devices): %" PRIu64
                              "\n",
                              left_out);
        if (r == -EEXIST)
                return say_option(r, "--replace", reterr);
        return r == -EISDIR && copy ? say_option(r, "--recursive", reterr) : r;
}

static int do_mv(FilesCommand *command, Error *reterr) {
        return move_or_copy(command, "files.move", false, reterr);
}

static int do_cp(FilesCommand *command, Error *reterr) {
        return move_or_copy(command, "files.copy", true, reterr);
}

/* --- the verb --- */

static const Subverb files_verbs[] = {
        { "ls", "[PATH] [--recursive] [--json]", 0, 1 },
        { "cat", "PATH...", 1, SIZE_MAX },
        { "get", "PATH [FILE]", 1, 2 },
        { "put", "FILE [PATH]", 1, 2 },
        { "stat", "PATH [--json]", 1, 1 },
        { "mkdir", "PATH... [--parents]", 1, SIZE_MAX },
        { "rm", "PATH... [--recursive]", 1, SIZE_MAX },
        { "mv", "FROM TO [--replace]", 2, 2 },
        { "cp", "FROM TO [--recursive] [--replace]", 2, 2 },
};
static const struct {
        int (*run)(FilesCommand *command, Error *reterr);
        bool reads; /* The verb leaves a session at rest. */
} files_runs[] = {
        { files_verb_do_ls, true },  { do_cat, true },  { do_get, true },
        { do_put, false },           { do_stat, true }, { do_mkdir, false },
        { files_verb_do_rm, false }, { do_mv, false },  { do_cp, false },
};
static_assert(ELEMENTSOF(files_runs) == ELEMENTSOF(files_verbs), "each verb has its function");

/* Replaces the server's cures, which are for all clients, by ones for the command line. */
static int files_verb_cure(const Subverb *verb, const FilesCommand *command, int r, Error *reterr) {
        if (r == -ENOENT && streq(verb->name, "mkdir") && !path_is_tilde(command->operands[0]))
                return error_cure(reterr, r, "--parents also makes the directories above it.");
        if (r == -ENOENT && reterr->cure[0] == '\0' && command->operands[0] &&
            glob_is_pattern(command->operands[0]))
                return error_cure(reterr, r,
                                  "holt files does not expand patterns: name each file. To list "
                                  "the files: holt files NAME ls");
        if (r == -ENOENT && reterr->cure[0] == '\0')
                return error_cure(reterr, r,
                                  "PATH is relative to the workspace, as a command inside sees it. "
                                  "To list the files: holt files NAME ls");
        if (r == -EEXIST && streq(verb->name, "mkdir"))
                return error_cure(reterr, r, "--parents accepts an existing directory.");
        if (r == -EISDIR && streq(verb->name, "get"))
                return error_cure(reterr, r, "Copy directories with holt cp -r %s:%s .",
                                  command->session, command->operands[0]);
        return r;
}

static int files_verb_run(const OptionResult *words, const void *options, Error *reterr) {
        FilesCommand command = { .options = *(const FilesOptions *)options };
        const Subverb *verb;
        char called[32];
        size_t which = 0;
        int r = operands_subverb("files", files_verbs, ELEMENTSOF(files_verbs), words->operands,
                                 words->operands_count, &which, reterr);

        if (r == 0)
                r = files_runs[which].reads
                            ? transfer_open_to_read(words->operands[0], &command.client, reterr)
                            : transfer_open(words->operands[0], &command.client, reterr);
        if (r < 0)
                return r;
        verb = &files_verbs[which];
        command.session = words->operands[0];
        command.operands = words->operands + 2;
        (void)snprintf(called, sizeof(called), "files %s", verb->name);
        transfer_begin(command.client, called, command.operands);
        r = files_runs[which].run(&command, reterr);
        if (r < 0)
                r = files_verb_cure(verb, &command, r, reterr);
        transfer_end(command.client, r, reterr);
        rpc_client_free(command.client);
        return r;
}

int cmd_files(int argc, char **argv) {
        static const AskVerb verb = {
                .syntax = { .verb = "files",
                            .usage = "NAME ls [PATH] | cat PATH... | get PATH [FILE] | put FILE "
                                     "[PATH] | stat PATH |\n"
                                     "             mkdir PATH... | rm PATH... | mv FROM TO | cp "
                                     "FROM TO  [OPTIONS]",
                            .summary = "Works on the files of session NAME, as commands in the "
                                       "session see them. PATH is relative to\nthe workspace. FILE "
                                       "is a file on the host; \"-\" is stdin or stdout.",
                            .options = files_options,
                            .options_count = ELEMENTSOF(files_options),
                            .operands = true,
                            .help_epilog = "Use holt cp to copy several files or directories in "
                                           "and out." },
                .most = SIZE_MAX,
                .streams = true,
                .run = files_verb_run,
        };
        FilesOptions options = { 0 };

        return ask_main(&verb, &options, argc, argv);
}
