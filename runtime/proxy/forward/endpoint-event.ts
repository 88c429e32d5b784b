/**
 * Ensures that clients using the deprecated HTTP+SSE transport keep sending their requests through the proxy. The first
 * event, `endpoint`, may contain an absolute URL on the target's own origin, which is reduced to path and query. Other
 * URLs stay unchanged.
 *
 * Inspects a stream only up to the first event; all later bytes pass through.
 * Source: MCP 2024-11-05, "HTTP with SSE".
 */
const maxBytes = 65_536

export interface EndpointRewriter {
  /** Returns the bytes to send for this chunk; empty while the first event is incomplete. */
  push(chunk: Buffer): Buffer
  /** Returns the buffered bytes when the stream ends early. */
  end(): Buffer
}

const empty: Buffer = Buffer.alloc(0)

/** `prefix` is prepended to the path for clients behind an ingress that strips it. */
export function makeEndpointRewriter(targetOrigin: string, prefix = ''): EndpointRewriter {
  let held: Buffer = empty
  let done = false
  return {
    push(chunk) {
      if (done) return chunk
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
      const { comments, to } = firstEvent(held)
      if (to === undefined && held.length <= maxBytes) {
        // Comments keep the connection open, so forward them without waiting for an event.
        const out = held.subarray(0, comments)
        held = held.subarray(comments)
        return out
      }
      done = true
      const out = to === undefined ? held : rewrite(held, comments, to, targetOrigin, prefix)
      held = empty
      return out
    },
    end() {
      const rest = held
      held = empty
      done = true
      return rest
    },
  }
}

interface Found {
  /** End of the comments before the first event. */
  readonly comments: number
  /** End of the first event; undefined while it is incomplete. */
  readonly to: number | undefined
}

function firstEvent(bytes: Buffer): Found {
  const text = bytes.toString('latin1')
  const end = /(?:\r\n|\n|\r)(?:\r\n|\n|\r)/g
  let from = 0
  for (let match = end.exec(text); match; match = end.exec(text)) {
    const to = match.index + match[0].length
    if (/^(?:data|event):/m.test(text.slice(from, to))) return { comments: from, to }
    from = to
  }
  return { comments: from, to: undefined }
}

function rewrite(bytes: Buffer, from: number, to: number, targetOrigin: string, prefix: string): Buffer {
  const text = bytes.toString('utf8', from, to)
  if (!/^event: ?endpoint\s*$/m.test(text)) return bytes
  const changed = text.replace(/^(data: ?)(\S+)/m, (all, field: string, value: string) => {
    const isPath = value.startsWith('/') && !value.startsWith('//')
    if (!isPath && !URL.canParse(value)) return all
    const url = new URL(value, targetOrigin)
    return url.origin === targetOrigin ? `${field}${prefix}${url.pathname}${url.search}` : all
  })
  return Buffer.concat([bytes.subarray(0, from), Buffer.from(changed), bytes.subarray(to)])
}
