/** The messages that one peer exchanges with the gateway, as text that is equal in every run. */

const unrecorded =
  /^(date|connection|keep-alive|transfer-encoding|content-length|host|user-agent|accept-encoding|accept-language|sec-fetch-mode)$/

export function headersText(headers: Iterable<readonly [string, unknown]>): string {
  const shown = [...headers].filter(([name]) => !unrecorded.test(name))
  return shown
    .map(([name, value]) => `${name}: ${String(value)}`)
    .toSorted()
    .join('; ')
}

export class Tape {
  #lines: string[] = []

  add(line: string): void {
    this.#lines.push(line)
  }

  /** Returns the lines since the last call. */
  take(): readonly string[] {
    const lines = this.#lines
    this.#lines = []
    return normalise(lines.join('\n')).split('\n')
  }
}

/** Replaces ids, ports, sealed state and long texts. Ids that the peers chose themselves begin with `own-` and stay. */
function normalise(text: string): string {
  const ids = new Map<string, string>()
  const numbered = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `<${ids.size + 1}>`)
    return ids.get(id) ?? ''
  }
  return text
    .replaceAll(/x{1000,}/g, (run) => `<${run.length} times x>`)
    .replaceAll(
      /"(id|requestId|progressToken)":(?!"own-)("[^"]*"|\d+)/g,
      (_all, name, id) => `"${name}":${numbered(id)}`,
    )
    .replaceAll(/"requestState":"[^"]*"/g, '"requestState":<state>')
    .replaceAll(/^id: .+$/gm, 'id: <event>')
    .replaceAll(/(last-event-id: )(?!own-)[^;]+/g, '$1<event>')
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<uuid>')
    .replaceAll(/127\.0\.0\.1:\d+/g, '<host>')
    .replaceAll(/"version":"\d[^"]*"/g, '"version":<version>')
}
