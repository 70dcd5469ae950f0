/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time tool: turns providers/NAME.json... into route-providers.c, the table
 * route_providers[]. A provider that a user could not write as a route fails the build. */
#include "base/strings.h"
#include "policy/net/gen-files.h"
#include "policy/routes/route.h"

/* A stub: the real table does not exist yet. */
const RouteProvider route_providers[1];
const size_t route_providers_count = 0;

static int route_provider_print_none(const GenFile *file, Error *reterr) {
        (void)file;
        (void)reterr;
        return 0;
}

static int route_provider_print_row(const GenFile *file, Error *reterr) {
        _cleanup_(json_freep) JsonDocument *document = NULL;
        _cleanup_free_ char *where = str_format("%s: $", file->path), *text = NULL;
        const JsonValue *root;
        int r = json_parse(file->bytes, file->length, file->path, &document, reterr);

        if (r < 0)
                return r;
        root = json_root(document);
        r = where ? route_check(root, where, reterr) : error_oom(reterr);
        if (r < 0)
                return r;
        if (!streq(json_member_text(root, "name"), file->name) ||
            !json_member_text(root, "description")[0])
                return error_set(reterr, ERROR_POLICY, 0,
                                 "%s: a provider needs its file's name and a description",
                                 file->path);
        text = route_text(root);
        if (!text)
                return error_oom(reterr);
        (void)printf("        { \"%s\", ", file->name);
        gen_print_string(json_member_text(root, "description"));
        (void)printf(",\n          ");
        gen_print_string(text);
        (void)printf(",\n          \"is not a known route; did you mean %s?\" },\n", file->name);
        return 0;
}

int main(int argc, char **argv) {
        static const GenTable table = {
                .head = "/* Made by gen-providers from policy/routes/providers/. */\n"
                        "#include \"policy/routes/route.h\"\n\n",
                .definitions = route_provider_print_none,
                .begin = "const RouteProvider route_providers[] = {\n",
                .row = route_provider_print_row,
                .end = "};\nconst size_t route_providers_count = "
                       "sizeof(route_providers) / sizeof(route_providers[0]);\n",
        };

        (void)argc;
        return gen_main(&table, argv);
}
