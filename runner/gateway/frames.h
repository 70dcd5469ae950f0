/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces credentials in the frames that a WebSocket service sends (RFC 6455, section 5.2).
 *
 * The scrubber (gateway/scrub.h) holds back bytes that may be the beginning of a credential. Here,
 * it must not do so beyond the end of a frame, because the next one may come only after an answer.
 * Nothing is lost by that. If a credential is split between two frames, the header of the second
 * one lies between its parts, so it would not be found anyway. */
#pragma once

#include <stdint.h>

#include "gateway/scrub.h"

enum { FRAME_HEAD_MAX = 10 };

typedef struct FrameReader {
        unsigned char head[FRAME_HEAD_MAX];
        unsigned head_length; /* bytes of the head that have come; 0 after a complete head */
        uint64_t left;        /* bytes of the frame that have not come */
} FrameReader;

/* Passes bytes on to ret. Returns 0, -ENOMEM, or -EPROTO for a frame that no service may send. Such
 * a frame has an impossible length, or a mask, which could hide a credential. */
int frames_feed(FrameReader *frames, Scrub *scrub, const char *data, size_t length, Buffer *ret);
