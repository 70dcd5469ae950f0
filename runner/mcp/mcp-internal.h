/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of holt mcp share:
 *
 * - server.c: the client's connection, and the messages that are not about tools
 * - keeper.c: the connection to the session's keeper
 * - tools.c: the table of tools
 * - schemas.c: descriptions of the tools
 * - calls.c: calls of tools, from the request to the result
 * - waits.c: the tool process_wait
 * - workspace.c: the session of a client that names none, and its roots (roots.c)
 * - content.c: the content of results
 * - resources.c: the files of /mnt/files
 * - subscriptions.c: changes of these files
 * - ask.c: questions to the user
 * - client-loop.c: the loop, which the server of --wrap has, too */
#pragma once

#include "base/json-write.h"
#include "base/json.h"
#include "base/loop.h"
#include "base/strings.h"
#include "mcp/client-loop.h"
#include "mcp/mcp.h"

enum {
        MCP_LINE_MAX = 1 << 20,      /* bytes of a message of the client */
        MCP_PEEK_MAX = 8 << 20,      /* bytes of a message whose id is found, to refuse it */
        MCP_CALLS_MAX = 64,          /* calls of tools that wait for the keeper */
        MCP_ASKED_MAX = 192,         /* these, and all other requests to the keeper */
        MCP_QUESTIONS_MAX = 16,      /* questions that wait for the user */
        MCP_SUBSCRIPTIONS_MAX = 64,  /* resources that a client watches */
        MCP_OUTPUT_MAX = 256 * 1024, /* bytes of each stream in a result */
        MCP_ARGUMENTS_MAX = 8,       /* arguments of a tool */
};

/* Codes of JSON-RPC errors, and the one of MCP for an unknown resource. */
enum {
        MCP_PARSE_ERROR = -32700,
        MCP_INVALID_REQUEST = -32600,
        MCP_UNKNOWN_METHOD = -32601,
        MCP_INVALID_PARAMS = -32602,
        MCP_INTERNAL_ERROR = -32603,
        MCP_NO_RESOURCE = -32002,
};

typedef struct Mcp Mcp;
typedef struct McpCall McpCall;

/* Continues a call with a reply of the keeper. result: NULL if the reply is the error. */
typedef void (*McpAnswerFn)(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error);

/* A request of the client that waits for the keeper. */
struct McpCall {
        McpCall *next;
        JsonWriter id;              /* The client's id, as JSON. */
        uint64_t number;            /* Id of the request to the keeper. */
        char run[24];               /* Name of the run, for an interrupt. */
        const struct McpTool *tool; /* NULL for a resource. */
        JsonDocument *arguments;    /* The client's message; owned. */
        const JsonValue *given;     /* The arguments in it, or NULL. */
        JsonWriter progress;        /* The progress token, as JSON; empty if there is none. */
        uint64_t progressed;        /* Notifications of progress that were sent. */
        McpAnswerFn answer;
        char *watched;     /* The URI of a subscription that the server looks at, or NULL; owned. */
        uint64_t deadline; /* Time in usec until the tool process_wait replies, or 0. */
};

/* A resource that the client watches. */
typedef struct McpSubscription {
        struct McpSubscription *next;
        char *uri, *path;    /* Owned. */
        bool asked, known;   /* A look goes on; size and time are known. */
        uint64_t size, time; /* Bytes, and milliseconds since the epoch. */
} McpSubscription;

/* A question to the user. */
typedef struct McpQuestion {
        struct McpQuestion *next;
        uint64_t id;
        McpCall *call; /* Owned: the call of request_grant, or NULL. */
        char *request; /* Owned: the id of a request of the keeper, or NULL. */
        char *rule;    /* Owned: the rule to grant. */
} McpQuestion;

/* A request of the client that waits until its session exists. */
typedef struct McpHeld {
        struct McpHeld *next;
        JsonDocument *message; /* Owned. */
} McpHeld;

struct Mcp {
        McpSettings settings; /* Its session is NULL until it exists. */
        ClientLoop loop;      /* Its keeper is NULL until it is needed. */
        McpCall *calls;
        McpQuestion *questions;
        McpSubscription *subscriptions;
        unsigned calls_count, questions_count, subscriptions_count;
        uint64_t look_at;     /* Time of the next look at them, in usec. */
        uint64_t runs, asked; /* Numbers of the last run and of the last question. */
        char shell[32];       /* Process of the last bash call, to tell its output from others. */
        bool initialized, elicits, lists_roots;
        McpHeld *held;
        unsigned held_count;
        StrList roots;        /* The roots that are mounted. */
        bool roots_changed;   /* The client has said so. */
        uint64_t roots_asked; /* Id of the question about them that waits, or 0. */
        uint64_t roots_until; /* Time in usec until which it waits. */
        char *notice;         /* A line for the next result of a tool, or NULL; owned. */
};

/* --- tools --- */

typedef struct McpArgument {
        const char *name;
        const char *parameter; /* Name of the method's parameter; NULL: the same. */
        const char *help;      /* NULL: the parameter's own. */
        bool required;
        RpcType type; /* If the method has no such parameter. */
} McpArgument;

enum { MCP_READ_ONLY = 1, MCP_DESTRUCTIVE = 2, MCP_IDEMPOTENT = 4, MCP_OPEN_WORLD = 8 };

typedef enum McpGroup {
        MCP_GROUP_BASH,
        MCP_GROUP_PYTHON,
        MCP_GROUP_FILES,
        MCP_GROUP_PROCESSES,
        MCP_GROUP_KV,
        MCP_GROUP_NETWORK,
        MCP_GROUP_MAX,
} McpGroup;

typedef struct McpTool {
        const char *name;
        McpGroup group;
        const char *title, *help;
        const char *method; /* NULL: start does everything. */
        McpArgument arguments[MCP_ARGUMENTS_MAX];
        unsigned hints;
        bool plain;       /* The result has no structured content. */
        bool runs;        /* The method has the parameters run and watch. */
        const char *noun; /* Name of what runs the command, for the line that ends its result. NULL:
                             no line. */
        const char *interrupt; /* Method that interrupts it, or NULL. */
        /* Writes parameters that the caller cannot choose; or NULL. */
        void (*write_fixed)(JsonWriter *w);
        /* Writes the items of the content; NULL: the result as JSON. */
        void (*write_content)(const Mcp *mcp, const JsonValue *result, JsonWriter *w);
        /* Starts a call that is more than one request; or NULL. */
        void (*start)(Mcp *mcp, McpCall *call);
} McpTool;

const McpTool *mcp_tool_find(const char *name);
RpcType mcp_tool_type(const Mcp *mcp, const McpTool *tool, const McpArgument *argument);
/* Whether the tool is in one of the groups that the caller wants. */
bool mcp_tool_is_served(const Mcp *mcp, const McpTool *tool);
/* Writes the tools that are served as members of an open array. */
void mcp_tools_write(const Mcp *mcp, JsonWriter *w);
/* Writes one of them. */
void mcp_tool_write(const Mcp *mcp, const McpTool *tool, JsonWriter *w);
/* Whether structured content has the members of this name. */
bool mcp_shows(const char *name);

/* --- the session of a client that names none --- */

/* Whether requests can be served now; otherwise they must be held. */
bool mcp_workspace_is_ready(const Mcp *mcp);
/* Takes over a request, which is served or refused later, or now. */
void mcp_workspace_hold(Mcp *mcp, JsonDocument *message);
/* Takes the answer to the question about roots. Returns false if id is not this question's. */
bool mcp_workspace_take_answer(Mcp *mcp, uint64_t id, const JsonValue *root);
/* The client says that its roots have changed. */
void mcp_workspace_changed(Mcp *mcp);
/* Ends a wait whose time has passed. Returns the time left in milliseconds, or -1. */
int mcp_workspace_left(Mcp *mcp);
/* Drops a request that is held. Returns false if none has this id. */
bool mcp_held_cancel(Mcp *mcp, const JsonValue *id);
void mcp_held_free(Mcp *mcp);

/* --- the client --- */

/* Serves a request that needs the session, and takes it over. */
void mcp_serve_held(Mcp *mcp, JsonDocument *message);
/* Refuses such a request: with a result for a tool, so that the model sees the text. */
void mcp_refuse(Mcp *mcp, const JsonValue *root, const char *text);

/* Writes a message as one line. */
void mcp_send(Mcp *mcp, JsonWriter *w);
/* Begins a reply to id; the object "result" is open. */
void mcp_reply_begin(const JsonWriter *id, JsonWriter *w);
/* Ends and sends it. */
void mcp_reply_end(Mcp *mcp, JsonWriter *w);
/* Writes the reply that is an error. id: NULL if the request could not be read. */
void mcp_write_error(const JsonWriter *id, int code, const char *message, JsonWriter *w);
void mcp_fail(Mcp *mcp, const JsonWriter *id, int code, const char *message);

/* --- the keeper --- */

/* Sends a request, for call. Writes the end of params. A failure ends the call by its answer. */
void mcp_ask(Mcp *mcp, McpCall *call, const char *method, JsonWriter *params, McpAnswerFn answer);
/* Sends a request whose reply does not matter. */
void mcp_ask_only(Mcp *mcp, const char *method, const JsonWriter *params);
/* Functions of the loop; data is the Mcp. */
void mcp_keeper_take(void *data, const RpcMessage *message, const Error *error);
void mcp_keeper_lost(void *data, const Error *error);

/* --- calls --- */

/* Takes over the message. */
void mcp_call_tool(Mcp *mcp, JsonDocument *message);
McpCall *mcp_call_new(JsonDocument *message);
void mcp_call_free(McpCall *call);
void mcp_call_cancel(Mcp *mcp, const JsonValue *id);
void mcp_call_output(Mcp *mcp, const JsonValue *params);
/* Returns the text that reports an error, or NULL if memory is out. The caller owns it. */
char *mcp_error_text(const Error *error);
/* Ends a call with a text that reports a failure, and frees it. */
void mcp_call_fail(Mcp *mcp, McpCall *call, const char *text);
void mcp_call_answer(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error);
/* Sends the text of mcp_call_fail() as the result of the call with this id. */
void mcp_tell(Mcp *mcp, const JsonWriter *id, const char *text);
/* An answer function for a call whose client expects no reply any more. */
void mcp_call_drop(Mcp *mcp, McpCall *call, const JsonValue *result, const Error *error);
void mcp_edit_start(Mcp *mcp, McpCall *call);

/* --- waits --- */

void mcp_wait_start(Mcp *mcp, McpCall *call);
/* Replies to the calls whose time has passed. Returns the time until the next one in milliseconds,
 * or -1. */
int mcp_waits_left(Mcp *mcp);

/* --- content --- */

void mcp_write_text(const char *text, JsonWriter *w);
enum { MCP_REFUSED_LINE = 2048 };
/* Writes one line about everything that was refused, from a result of the keeper, and about the
 * limits that were reached. Returns false if there is nothing to tell. */
bool mcp_content_refused(const char *session, const JsonValue *result, char ret[MCP_REFUSED_LINE]);
/* Writes the line that ends the result of a tool with a noun. */
void mcp_content_end(const Mcp *mcp, const McpTool *tool, const JsonValue *result,
                     char ret[MCP_REFUSED_LINE]);
/* Writes the member structuredContent. note: that line, or NULL. */
void mcp_write_structured(const JsonValue *result, const char *note, JsonWriter *w);
void mcp_content_command(const Mcp *mcp, const JsonValue *result, JsonWriter *w);
void mcp_content_python(const Mcp *mcp, const JsonValue *result, JsonWriter *w);
void mcp_content_status(const Mcp *mcp, const JsonValue *result, JsonWriter *w);
void mcp_content_read(const Mcp *mcp, const JsonValue *result, JsonWriter *w);

/* --- resources --- */

void mcp_resources_list(Mcp *mcp, JsonDocument *message);
void mcp_resources_read(Mcp *mcp, JsonDocument *message);

/* Returns the path of a resource, which the caller owns, or NULL if the URI is not one of ours. */
char *mcp_resource_path(const char *uri);

/* --- subscriptions --- */

void mcp_subscribe(Mcp *mcp, JsonDocument *message);
void mcp_unsubscribe(Mcp *mcp, JsonDocument *message);
/* Looks at the files if it is time. Returns the time until the next look in milliseconds, or -1. */
int mcp_subscriptions_wait(Mcp *mcp);
void mcp_subscriptions_free(Mcp *mcp);

/* --- questions --- */

void mcp_grant_start(Mcp *mcp, McpCall *call);
/* A program inside asks for a host. */
void mcp_ask_host(Mcp *mcp, const RpcMessage *message);
/* Takes the client's answer to the question of this id, if there is one. */
void mcp_take_answer(Mcp *mcp, uint64_t id, const JsonValue *root);
/* Withdraws the question of a call of request_grant that the client has cancelled. id: in JSON. */
void mcp_question_cancel(Mcp *mcp, const char *id);
void mcp_questions_free(Mcp *mcp);
