/* SPDX-License-Identifier: Apache-2.0 */
/* The table of methods of `holt serve`. */
#include <errno.h>
#include <string.h>

#include "methods/methods.h"
#include "serve/methods.h"
#include "serve/proxy-internal.h"

/* The session does not exist, or its keeper cannot be started. */
enum {
        START_ERRORS = RPC_ERROR(USAGE) | RPC_ERROR(MISSING) | RPC_ERROR(POLICY) |
                       RPC_ERROR(LAYER) | RPC_ERROR(BUSY) | RPC_ERROR(DATA),
};

static int with_session(const RpcMethod *method, RpcMethod *ret) {
        static const RpcParam session = { "session",
                                          RPC_STRING,
                                          true,
                                          SESSION_NAME_MAX,
                                          "name of the session",
                                          .form = &session_name_form };
        RpcParam *params = calloc(method->params_count + 1, sizeof(*params));
        const char *example = method->example.params + 1; /* after the brace */

        if (!params)
                return -ENOMEM;
        params[0] = session;
        if (method->params_count > 0)
                memcpy(params + 1, method->params, method->params_count * sizeof(*params));
        *ret = *method;
        ret->params = params;
        ret->params_count++;
        ret->errors |= START_ERRORS;
        ret->example.params = str_format("{\"session\": \"work\"%s%s", *example == '}' ? "" : ", ",
                                         example);
        ret->function = proxy_call;
        return ret->example.params ? 0 : -ENOMEM;
}

RpcMethod *proxy_methods_free(RpcMethod *methods, size_t more_count, size_t count) {
        for (size_t i = more_count; methods && i < count; i++) {
                free((void *)methods[i].params);
                free((void *)methods[i].example.params);
        }
        free(methods);
        return NULL;
}

int proxy_methods(const RpcMethod *more, size_t more_count, RpcMethod **ret, size_t *ret_count,
                  Error *reterr) {
        size_t count;
        const RpcMethod *methods = session_methods(&count);
        RpcMethod *all = calloc(more_count + count, sizeof(*all));

        if (!all)
                return error_oom(reterr);
        memcpy(all, more, more_count * sizeof(*all));
        for (size_t i = 0; i < count; i++)
                if (with_session(&methods[i], &all[more_count + i]) < 0) {
                        proxy_methods_free(all, more_count, more_count + i + 1);
                        return error_oom(reterr);
                }
        *ret = all;
        *ret_count = more_count + count;
        return 0;
}
