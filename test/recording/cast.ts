/** Formats a recording as asciicast v2, and as an SVG in which each line appears at its time. No I/O. */

export interface Recorded {
  readonly atMs: number
  readonly text: string
}

const width = 110
const maxPauseMs = 1500
const lineHeight = 19
const margin = 16
/** Pause at the end before the animation restarts. */
const restMs = 6000

/** Source: the asciicast v2 format of asciinema. */
export function castOf(recorded: readonly Recorded[]): string {
  const lines = linesOf(recorded)
  const header = { version: 2, width, height: lines.length + 1, title: 'gatehouse' }
  const events = shortened(recorded).map(({ atMs, text }) => [
    Math.round(atMs) / 1000,
    'o',
    text.replaceAll('\n', '\r\n'),
  ])
  return [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join('')
}

/** `label` describes the picture for screen readers. */
export function svgOf(recorded: readonly Recorded[], label: string): string {
  const lines = linesOf(shortened(recorded))
  const totalMs = (lines.at(-1)?.atMs ?? 0) + restMs
  const height = lines.length * lineHeight + 2 * margin
  const rows = lines.map(({ atMs, text }, index) => {
    const at = ((100 * atMs) / totalMs).toFixed(2)
    const kind = text.startsWith('$ ') ? ' class="c"' : text.startsWith('# ') ? ' class="n"' : ''
    return {
      style: `@keyframes l${index}{0%,${at}%{opacity:0}${(Number(at) + 0.01).toFixed(2)}%,100%{opacity:1}}#l${index}{animation:l${index} ${totalMs}ms infinite}`,
      text: `<text id="l${index}"${kind} x="${margin}" y="${margin + (index + 0.75) * lineHeight}">${escaped(text)}</text>`,
    }
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width * 8.1 + 2 * margin} ${height}" role="img" aria-label="${escaped(label)}">`,
    '<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d0d7de;white-space:pre}.c{fill:#7ee787}.n{fill:#8b949e}',
    ...rows.map(({ style }) => style),
    '</style>',
    '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
    ...rows.map(({ text }) => text),
    '</svg>\n',
  ].join('\n')
}

function shortened(recorded: readonly Recorded[]): readonly Recorded[] {
  let cutMs = 0
  let before = 0
  return recorded.map(({ atMs, text }) => {
    cutMs += Math.max(0, atMs - before - maxPauseMs)
    before = atMs
    return { atMs: atMs - cutMs, text }
  })
}

/** Returns whole lines, each with the time of its first character. */
function linesOf(recorded: readonly Recorded[]): readonly Recorded[] {
  const lines: { atMs: number; text: string }[] = []
  let isOpen = false
  for (const { atMs, text } of recorded) {
    for (const [index, part] of text.split('\n').entries()) {
      const last = lines.at(-1)
      if (index === 0 && isOpen && last) last.text += part
      else lines.push({ atMs, text: part })
    }
    isOpen = !text.endsWith('\n')
    if (!isOpen) lines.pop()
  }
  return lines
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
