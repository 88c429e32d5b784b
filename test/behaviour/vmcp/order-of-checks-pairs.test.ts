/**
 * Which of two reasons to reject a call takes precedence, what the call costs, and whether it reaches a backend. The
 * expected values are in test/fixtures/vmcp/order-of-checks-pairs.json.
 *
 *   node test/behaviour/vmcp/order-of-checks-pairs.test.ts --update    rewrites them; review the diff
 */
import t, { type Test } from 'tap'
import { missingRedis } from '../../helpers/redis.ts'
import { type Cells, compareCells } from '../../helpers/vmcp/checks/expected.ts'
import { nameFor, pairs, type Reason } from '../../helpers/vmcp/checks/reasons.ts'
import { startChecksRig } from '../../helpers/vmcp/checks/rig.ts'
import { type Surface, surfaces } from '../../helpers/vmcp/checks/surfaces.ts'

t.setTimeout(120_000)

/** Steps skip authorization and rate limits. Workflows with an unusable step are omitted. */
const notOfSteps: ReadonlySet<Reason> = new Set([
  'unknown',
  'header-mismatch',
  'unauthorized',
  'pinned',
  'limited',
  'backend-left-out',
])

const ways: Readonly<Record<string, (reason: Reason) => boolean>> = {
  'direct call, session era': (reason) => reason !== 'header-mismatch',
  'direct call, stateless era': () => true,
  'workflow step': (reason) => !notOfSteps.has(reason),
}

async function cellsOf(t: Test, all: typeof pairs): Promise<Cells> {
  const tools = [nameFor(), ...all.map((pair) => nameFor(...pair))]
  const steps = all
    .filter((pair) => !pair.some((reason) => notOfSteps.has(reason)))
    .map((pair) => nameFor(...pair))
  const rig = await startChecksRig(t, { tools, prompts: [], resources: [], workflows: [], steps })
  const cells: Record<string, unknown> = {}
  for (const [title, applies] of Object.entries(ways))
    for (const pair of all.filter((reasons) => reasons.every(applies))) {
      const name = nameFor(...pair)
      const { answer, audit, spent, backend } = await rig.observe(
        (surfaces[title] as Surface).work(rig, name),
      )
      cells[`${title} × ${pair.join(' and ')}`] = { answer, audit, spent, backend }
    }
  return cells
}

t.test('order of checks: which of two reasons takes precedence', { skip: missingRedis }, async (t) => {
  const isDown = (pair: readonly Reason[]): boolean => pair.includes('backend-down')
  compareCells(t, 'order-of-checks-pairs.json', {
    ...(await cellsOf(
      t,
      pairs.filter((pair) => !isDown(pair)),
    )),
    ...(await cellsOf(t, pairs.filter(isDown))),
  })
})
