/** Checks of a soak test: a line through the second half, and a graph with every sample. */
import t from 'tap'
import { drawGraph } from '../../bench/soak/graph.ts'
import { check, secondHalf, slopeOf } from '../../bench/soak/check.ts'
import type { Sample } from '../../bench/soak/sampler.ts'

/** Returns an hour of samples, one every ten seconds; the live heap is sampled once a minute. */
function run(memory: (hours: number) => number): Sample[] {
  return Array.from({ length: 360 }, (_, i) => {
    const seconds = (i + 1) * 10
    const mb = memory(seconds / 3_600)
    return {
      seconds,
      rssMb: 300 + mb,
      heapUsedMb: 60 + mb,
      heapTotalMb: 100,
      externalMb: 20,
      arrayBuffersMb: 5,
      liveHeapMb: i % 6 === 5 ? 40 + mb : undefined,
      liveExternalMb: i % 6 === 5 ? 20 : undefined,
      sessions: 150,
      sockets: 400,
      timers: 1,
      files: 450,
      cpuServer: 10,
      cpuOthers: 10,
      longestTurnMs: 20,
      operations: i * 600,
      failures: 0,
      callsPerSecond: i % 6 === 5 ? 2_000 : undefined,
      p50Ms: i % 6 === 5 ? 1 : undefined,
      p99Ms: i % 6 === 5 ? 5 + mb : undefined,
    }
  })
}

t.test('slope: returns the rise per hour of a straight line', async (t) => {
  const { perHour, error, points } = slopeOf(
    run((hours) => 7 * hours),
    ({ liveHeapMb }) => liveHeapMb,
  )
  t.ok(Math.abs(perHour - 7) < 1e-9)
  t.ok(error < 1e-6)
  t.equal(points.length, 60, 'samples without a value are skipped')
})

t.test('verdict: growth in the first half is ignored', async (t) => {
  const samples = run((hours) => Math.min(hours, 0.4) * 100)
  t.ok(secondHalf(samples).every(({ seconds }) => seconds >= 1_800))
  t.ok(check(samples, { rss: 40, live: 4 }).flat)
})

t.test('verdict: a leak of a few megabytes an hour is detected despite noise', async (t) => {
  const noise = (hours: number): number => Math.sin(hours * 400)
  t.ok(check(run(noise), { rss: 40, live: 4 }).flat)
  const { flat, text } = check(
    run((hours) => noise(hours) + 8 * hours),
    { rss: 40, live: 4 },
  )
  t.notOk(flat)
  t.match(text, /heap after a full collection.*\| 4 \|/)
})

t.test('graph: one path for each line, and no invalid numbers', async (t) => {
  const svg = drawGraph(
    run(() => 0),
    'a run',
  )
  t.notMatch(svg, /NaN|undefined|Infinity/)
  t.equal(svg.match(/<path class="line"/g)?.length, 16, 'eight lines and eight marks in the legend')
  t.match(svg, /prefers-color-scheme:dark/)
})
