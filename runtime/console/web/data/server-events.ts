/**
 * Reads the server-sent events of one response. This module replaces EventSource, which hides the response status and
 * cannot send headers.
 * Source: HTML standard, server-sent events.
 */
export interface ReceivedEvent {
  readonly id: string | undefined
  readonly data: string
}

/** Maximum length of an event. A longer event ends the stream; the API never sends such events. */
const maxEventChars = 4 * 1024 * 1024

export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ReceivedEvent> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  let rest = ''
  let id: string | undefined
  let data: string[] = []
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/)
      rest = lines.pop() ?? ''
      if (rest.length > maxEventChars) throw new Error('a server-sent event is too long')
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield { id, data: data.join('\n') }
          data = []
        } else if (line.startsWith('data:')) data.push(valueOf(line, 5))
        else if (line.startsWith('id:')) id = valueOf(line, 3)
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

function valueOf(line: string, from: number): string {
  return line[from] === ' ' ? line.slice(from + 1) : line.slice(from)
}
