/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/secrets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/list.h"
#include "base/strings.h"
#include "gateway/fetcher.h"
#include "gateway/server.h"

typedef struct SecretWait {
        struct SecretWait *next;
        const Route *route;
        SecretFn fn;
        void *data;
} SecretWait;

static const char *const kind_words[] = {
        [SECRET_ENV] = "the environment variable",
        [SECRET_FILE] = "the file",
        [SECRET_COMMAND] = "the command",
};

static void secret_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

static bool secret_is_known(const Inject *inject) {
        return inject->kind == SECRET_NONE || (inject->secret && inject->expires > time_now_usec());
}

/* Returns the first credential that is not there, or NULL. */
static Inject *secrets_missing(const Route *route) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (!secret_is_known(&route->injects[i]))
                        return &route->injects[i];
        return NULL;
}

bool secrets_has_any(const Route *route) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (route->injects[i].kind != SECRET_NONE)
                        return true;
        return false;
}

static void secret_explain(const Inject *inject, const char *why, char *ret, size_t size) {
        (void)snprintf(ret, size, "there is no credential for this route: %s %s%s%s",
                       kind_words[inject->kind], inject->source,
                       inject->kind == SECRET_ENV
                               ? " is not set where the session was started; stop "
                                 "the session, and start it with the variable"
                               : ": ",
                       inject->kind == SECRET_ENV ? "" : why);
}

/* Returns USER:SECRET. */
static char *secret_login(const Inject *inject) {
        return str_format("%s:%s", inject->user, inject->secret ? inject->secret : "");
}

char *secret_value(const Inject *inject) {
        char *login = inject->user ? secret_login(inject) : NULL;
        char *coded = login ? base64_encode(login, strlen(login)) : NULL;
        char *value = inject->user && !coded
                              ? NULL
                              : str_format("%s%s%s", coded ? "Basic " : inject->prefix,
                                           coded            ? coded
                                           : inject->secret ? inject->secret
                                                            : "",
                                           inject->suffix);

        secret_free(login);
        secret_free(coded);
        return value;
}

int secret_scrub(const Inject *inject, Scrub *scrub) {
        char *login = inject->user && inject->secret ? secret_login(inject) : NULL;
        int r = 0;

        if (inject->user && inject->secret)
                r = login ? scrub_add(scrub, login) : -ENOMEM;
        if (r == 0 && inject->secret)
                r = scrub_add(scrub, inject->secret);
        secret_free(login);
        return r;
}

/* Asks for the first credential that is missing. Returns false, and why, if that is impossible. */
static bool secrets_ask(Gateway *gateway, const Route *route, char *ret, size_t size) {
        const Inject *inject = secrets_missing(route);
        const uint32_t number = inject->number;

        if (inject->kind != SECRET_ENV && gateway->fetch_fd >= 0 &&
            send(gateway->fetch_fd, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
                return true;
        secret_explain(inject, "holt-gateway cannot read it", ret, size);
        return false;
}

void secrets_get(Gateway *gateway, const Route *route, SecretFn fn, void *data) {
        char why[400];
        SecretWait *wait;

        if (!secrets_missing(route))
                return fn(data, NULL, "");
        wait = calloc(1, sizeof(*wait));
        if (!wait)
                return fn(data, "holt-gateway is out of memory", "");
        if (!secrets_ask(gateway, route, why, sizeof(why))) {
                free(wait);
                return fn(data, why, "");
        }
        *wait = (SecretWait){ .route = route, .fn = fn, .data = data };
        list_append(&gateway->secret_waits, wait);
}

void secrets_forget(Gateway *gateway, const void *data) {
        list_each_safe(wait, gateway->secret_waits)
                if (wait->data == data) {
                        (void)list_remove(&gateway->secret_waits, wait);
                        free(wait);
                }
}

static bool route_uses(const Route *route, uint32_t number) {
        for (size_t i = 0; i < route->injects_count; i++)
                if (route->injects[i].kind > SECRET_ENV && route->injects[i].number == number)
                        return true;
        return false;
}

/* Keeps the credential, and explains in why if there is none. */
static void secret_take(Gateway *gateway, const Fetched *fetched, char *why, size_t size) {
        for (size_t i = 0; i < gateway->routes_count; i++)
                for (size_t k = 0; k < gateway->routes[i].injects_count; k++) {
                        Inject *inject = &gateway->routes[i].injects[k];

                        if (inject->kind <= SECRET_ENV || inject->number != fetched->number)
                                continue;
                        secret_free(inject->secret);
                        inject->secret = fetched->secret[0] ? strdup(fetched->secret) : NULL;
                        inject->expires = time_now_usec() + SECRET_KEPT * 1000000ULL;
                        if (!inject->secret)
                                secret_explain(inject, fetched->why, why, size);
                }
}

/* Continues everybody who has waited for this credential. */
static void secrets_continue(Gateway *gateway, uint32_t number, const char *why, const char *told) {
        list_each_safe(wait, gateway->secret_waits) {
                const SecretWait done = *wait;

                if (!route_uses(wait->route, number))
                        continue;
                (void)list_remove(&gateway->secret_waits, wait);
                free(wait);
                if (why[0])
                        done.fn(done.data, why, told);
                else
                        secrets_get(gateway, done.route, done.fn, done.data);
        }
}

/* Masks all credentials that the gateway knows. A command may have been given one of them. */
static void secrets_mask(const Gateway *gateway, char *told) {
        _cleanup_(scrub_clear) Scrub scrub = { 0 };
        int r = 0;

        for (size_t i = 0; told[0] && i < gateway->routes_count; i++)
                for (size_t k = 0; r == 0 && k < gateway->routes[i].injects_count; k++)
                        r = secret_scrub(&gateway->routes[i].injects[k], &scrub);
        if (r < 0)
                told[0] = '\0';
        scrub_text(&scrub, told);
}

static void secrets_on_reply(void *data, uint32_t events) {
        static Fetched fetched;
        Gateway *gateway = data;
        char why[400] = "";
        ssize_t n = recv(gateway->fetch_fd, &fetched, sizeof(fetched), MSG_DONTWAIT);

        (void)events;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n != (ssize_t)sizeof(fetched)) {
                loop_stop(gateway->loop); /* The fetcher has gone. */
                return;
        }
        fetched.told[sizeof(fetched.told) - 1] = '\0';
        fetched.why[sizeof(fetched.why) - 1] = fetched.secret[sizeof(fetched.secret) - 1] = '\0';
        secrets_mask(gateway, fetched.told);
        secret_take(gateway, &fetched, why, sizeof(why));
        explicit_bzero(fetched.secret, sizeof(fetched.secret));
        secrets_continue(gateway, fetched.number, why, fetched.told);
        server_turn(gateway);
}

int secrets_watch(Gateway *gateway, Error *reterr) {
        LoopWatch *ignored;

        return gateway->fetch_fd < 0 ? 0
                                     : loop_watch(gateway->loop, gateway->fetch_fd, EPOLLIN,
                                                  secrets_on_reply, gateway, &ignored, reterr);
}
