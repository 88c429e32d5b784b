/**
 * The response to each kind of request for each reason to reject it, and its effects: counters, audit lines, tokens and
 * quotas, and requests to backends. The expected values are in test/fixtures/vmcp/order-of-checks.json.
 *
 *   node test/behaviour/vmcp/order-of-checks.test.ts --update    rewrites them; review the diff
 */
import t, { type Test } from 'tap'
import { missingRedis } from '../../helpers/redis.ts'
import type { Settings } from '../../helpers/vmcp/checks/config.ts'
import { type Cells, compareCells } from '../../helpers/vmcp/checks/expected.ts'
import { nameFor, type Reason, reasons } from '../../helpers/vmcp/checks/reasons.ts'
import { startChecksRig } from '../../helpers/vmcp/checks/rig.ts'
import { reasonsAt, type Surface, surfaces } from '../../helpers/vmcp/checks/surfaces.ts'

t.setTimeout(120_000)

const down = (reason: Reason): boolean => reason === 'backend-down'
const up = (reason: Reason): boolean => !down(reason)

interface Group {
  /** Prefix of the titles of its cells. */
  readonly title?: string
  readonly surfaces: (title: string) => boolean
  readonly reasons: (reason: Reason) => boolean
  readonly settings: Settings
}

const throughSearch = (title: string): boolean => /call_tool|tool search/.test(title)
const others = (title: string): boolean => !throughSearch(title)

/** Each group has its own virtual server. */
const groups: readonly Group[] = [
  { surfaces: others, reasons: up, settings: { codeMode: { enabled: true } } },
  { surfaces: throughSearch, reasons: up, settings: { optimizer: {} } },
  { surfaces: others, reasons: down, settings: { codeMode: { enabled: true } } },
  { surfaces: throughSearch, reasons: down, settings: { optimizer: {} } },
  {
    title: 'partial failure mode fail: ',
    surfaces: (title) => /^(.*\/list|direct call.*|read|prompt|completion)$/.test(title),
    reasons: (reason) => reason === 'unauthorized',
    settings: {
      operational: { failureHandling: { partialFailureMode: 'fail', healthCheckInterval: '24h' } },
    },
  },
]

async function cellsOf(t: Test, group: Group): Promise<Cells> {
  const all = [nameFor(), ...reasons.filter(group.reasons).map((reason) => nameFor(reason))]
  const workflows = all.filter((name) => name !== nameFor('unknown'))
  const items = { tools: all, prompts: all, resources: all, workflows, steps: all }
  const rig = await startChecksRig(t, items, group.settings)
  const cells: Record<string, unknown> = {}
  const observe = async (title: string, { work }: Surface, name: string): Promise<void> => {
    cells[`${group.title ?? ''}${title} × ${name}`] = await rig.observe(work(rig, name))
  }
  for (const [title, surface] of Object.entries(surfaces).filter(([name]) => group.surfaces(name))) {
    const own = reasonsAt(surface).filter(group.reasons)
    for (const name of own.map((reason) => nameFor(reason))) await observe(title, surface, name)
    if (!group.reasons('backend-down')) await observe(title, surface, nameFor())
  }
  return cells
}

t.test(
  'order of checks: every kind of request × every reason to reject it',
  { skip: missingRedis },
  async (t) => {
    const cells: Record<string, unknown> = {}
    for (const group of groups) Object.assign(cells, await cellsOf(t, group))
    compareCells(t, 'order-of-checks.json', cells)
  },
)
