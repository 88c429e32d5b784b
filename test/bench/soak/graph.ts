/**
 * Draws a run as SVG, readable on light and dark pages: memory at the top, then sessions and sockets, latency at the
 * bottom.
 */
import type { Sample } from './sampler.ts'

interface Line {
  readonly label: string
  readonly colour: string
  readonly value: (sample: Sample) => number | undefined
}

const WIDTH = 860
const LEFT = 56
const RIGHT = 150
const PANEL = 190
const GAP = 64
const TOP = 62

/** Colors that are distinguishable with color blindness, on white and on black. */
const MEMORY: readonly Line[] = [
  { label: 'RSS', colour: '#d55e00', value: ({ rssMb }) => rssMb },
  { label: 'heap used', colour: '#3b8fd1', value: ({ heapUsedMb }) => heapUsedMb },
  { label: 'live heap', colour: '#009e73', value: ({ liveHeapMb }) => liveHeapMb },
  { label: 'outside the heap', colour: '#b56aa0', value: ({ externalMb }) => externalMb },
]
const COUNTS: readonly Line[] = [
  { label: 'sessions', colour: '#d55e00', value: ({ sessions }) => sessions },
  { label: 'sockets', colour: '#3b8fd1', value: ({ sockets }) => sockets },
]
const LATENCY: readonly Line[] = [
  { label: 'p99', colour: '#d55e00', value: ({ p99Ms }) => p99Ms },
  { label: 'p50', colour: '#3b8fd1', value: ({ p50Ms }) => p50Ms },
]

const STYLE = `text{font:13px system-ui,sans-serif;fill:#24292f}.grid{stroke:#8884;stroke-width:1}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.title{font-weight:600}
@media (prefers-color-scheme:dark){text{fill:#d8dee4}}`

export function drawGraph(samples: readonly Sample[], title: string): string {
  const isLoaded = samples.some(({ p99Ms }) => p99Ms !== undefined)
  const panels: readonly (readonly [readonly Line[], string])[] = [
    [MEMORY, 'Memory, MB'],
    [COUNTS, 'Open'],
    ...(isLoaded ? ([[LATENCY, 'Plain calls of each minute, ms']] as const) : []),
  ]
  const height = TOP + panels.length * (PANEL + GAP) - GAP + 40
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${title}">`,
    `<style>${STYLE}</style>`,
    `<text class="title" x="${LEFT}" y="20">${title}</text>`,
    ...panels.map(([lines, caption], n) => panel(samples, lines, TOP + n * (PANEL + GAP), caption)),
    `<text x="${WIDTH - RIGHT}" y="${height - 6}" text-anchor="end">minutes</text>`,
    '</svg>\n',
  ].join('\n')
}

function panel(samples: readonly Sample[], lines: readonly Line[], top: number, caption: string): string {
  const seconds = Math.max(1, samples.at(-1)?.seconds ?? 1)
  const values = lines.flatMap(({ value }) => samples.map((sample) => value(sample) ?? 0))
  const step = niceStep(Math.max(1, ...values) / 4)
  const highest = step * Math.ceil(Math.max(1, ...values) / step)
  const x = (at: number): string => (LEFT + ((WIDTH - LEFT - RIGHT) * at) / seconds).toFixed(1)
  const y = (value: number): string => (top + PANEL - (PANEL * value) / highest).toFixed(1)
  const parts = [`<text x="${LEFT}" y="${top - 12}">${caption}</text>`]
  for (let value = 0; value <= highest; value += step) {
    parts.push(`<path class="grid" d="M${LEFT} ${y(value)}H${WIDTH - RIGHT}"/>`)
    parts.push(`<text x="${LEFT - 6}" y="${Number(y(value)) + 4}" text-anchor="end">${value}</text>`)
  }
  const minutes = niceStep(seconds / 60 / 6)
  for (let minute = 0; minute * 60 <= seconds; minute += minutes)
    parts.push(`<text x="${x(minute * 60)}" y="${top + PANEL + 18}" text-anchor="middle">${minute}</text>`)
  const ends = labelHeights(lines.map(({ value }) => Number(y(lastOf(samples, value)))))
  for (const [i, { colour, label, value }] of lines.entries()) {
    const points = samples.flatMap((sample) => {
      const at = value(sample)
      return at === undefined ? [] : [`${x(sample.seconds)} ${y(at)}`]
    })
    if (points.length === 0) continue
    parts.push(`<path class="line" stroke="${colour}" d="M${points.join('L')}"/>`)
    const at = ends[i] ?? 0
    parts.push(`<path class="line" stroke="${colour}" d="M${WIDTH - RIGHT + 8} ${at}h14"/>`)
    parts.push(`<text x="${WIDTH - RIGHT + 27}" y="${at + 4}">${label}</text>`)
  }
  return parts.join('\n')
}

function lastOf(samples: readonly Sample[], value: Line['value']): number {
  return samples.map(value).findLast((each) => each !== undefined) ?? 0
}

/** Returns heights of labels without overlaps. */
function labelHeights(wanted: readonly number[]): number[] {
  const heights = [...wanted]
  const order = heights.map((_, i) => i).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0))
  for (const [n, i] of order.entries()) {
    const before = order[n - 1]
    if (before !== undefined) heights[i] = Math.max(heights[i] ?? 0, (heights[before] ?? 0) + 17)
  }
  return heights
}

/** Returns the next number of the series 1, 2, 5, 10, 20, 50 … */
function niceStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)))
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
}
