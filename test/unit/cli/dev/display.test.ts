/** The screen of `gatehouse dev` always ends with the latest state, even if the state changes during drawing. */
import t from 'tap'
import type { LocalObject } from '../../../../runtime/toolkit/manifests/objects.ts'
import { Display } from '../../../../runtime/toolkit/local/screen/display.ts'
import { resourceRows } from '../../../../runtime/toolkit/local/screen/resources.ts'
import type { Screen } from '../../../../runtime/toolkit/local/screen/screen.ts'
import type { WorkloadView } from '../../../../runtime/toolkit/local/session.ts'

const server: LocalObject = {
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPServer',
  metadata: { name: 'notes', namespace: 'default', uid: 'u' },
}

function rig(show: (screen: Screen) => void) {
  const errors: unknown[] = []
  const display = new Display({ title: 'dev', writer: { show }, onError: (error) => errors.push(error) })
  let phase: WorkloadView['phase'] = 'starting'
  const session = {
    cluster: { objects: [server] },
    get workloads(): readonly WorkloadView[] {
      return [{ workload: { ...server, kind: 'Deployment' }, parent: server, phase }]
    },
  }
  const redraw = (to: WorkloadView['phase']): void => {
    phase = to
    display.redraw(session)
  }
  return { display, redraw, errors }
}

t.test('display: a change at any moment of a drawing is shown', async (t) => {
  for (let turns = 0; turns < 30; turns++) {
    const states: (string | undefined)[] = []
    const { display, redraw } = rig(({ resources }) => states.push(resources[0]?.state))
    redraw('starting')
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    redraw('ready')
    await new Promise(setImmediate)
    await display.settled()
    t.equal(states.at(-1), 'ready', `${turns} turns later`)
  }
})

t.test('display: a drawing error is reported, and the next change is drawn', async (t) => {
  let isBroken = true
  const states: (string | undefined)[] = []
  const { display, redraw, errors } = rig(({ resources }) => {
    if (isBroken) throw new Error('broken')
    states.push(resources[0]?.state)
  })
  redraw('starting')
  await display.settled()
  t.match(errors, [{ message: 'broken' }])
  isBroken = false
  redraw('ready')
  await display.settled()
  t.strictSame(states, ['ready'])
})

t.test('resources: upstreams that identify their users are not a failure', async (t) => {
  const conditions = [
    { type: 'IdentitySynthesized', status: 'False', reason: 'AllUpstreamsHaveUserInfo', message: 'x' },
  ]
  const config: LocalObject = {
    ...server,
    kind: 'MCPExternalAuthConfig',
    status: { conditions, referenceCount: 0 },
  }
  t.match(resourceRows({ objects: [config], workloads: [], addresses: [] }), [{ state: 'unused' }])
  const broken = { ...config, status: { conditions: [{ ...conditions[0], type: 'Valid' }] } }
  t.match(resourceRows({ objects: [broken], workloads: [], addresses: [] }), [{ state: 'failed' }])
})
