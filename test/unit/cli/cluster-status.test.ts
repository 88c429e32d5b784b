/**
 * The state that `gatehouse cluster` shows for objects: statuses of the hooks in recorded cases, and statuses of pods.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { podProblem } from '../../../runtime/tools/cluster/pods.ts'
import { problemsOf, stateOf } from '../../../runtime/tools/cluster/state.ts'
import { ageText, Table } from '../../../runtime/tools/cluster/table.ts'
import { conclude } from '../../../runtime/tools/cluster/why.ts'
import { type ClusterAccess, pagesOf } from '../../../runtime/toolkit/cluster/kubeconfig.ts'
import { untyped } from '../../helpers/untyped.ts'

const recorded = globSync('test/hooks/*/*/response.json').flatMap((file) => {
  const read = (path: string) => untyped(JSON.parse(readFileSync(path, 'utf8')))
  const { parent } = read(join(file, '../request.json'))
  const { status } = read(file)
  return parent && status ? [{ file, object: { ...parent, status } }] : []
})
const caseOf = (name: string) =>
  recorded.find(({ file }) => file === `test/hooks/${name}/response.json`)?.object

t.test('state: uses the condition Ready, or Valid without it, in every recorded case', async (t) => {
  t.ok(recorded.length > 100)
  for (const { file, object } of recorded) {
    const { ready, reason, message } = stateOf(object)
    const conditions: { type: string; status: string }[] = object.status.conditions ?? []
    const summary =
      conditions.find(({ type }) => type === 'Ready') ?? conditions.find(({ type }) => type === 'Valid')
    if (object.status.observedGeneration !== object.metadata.generation) t.equal(ready, 'Unknown', file)
    else if (summary) t.equal(ready, summary.status, file)
    if (ready !== 'True') t.ok(reason !== '' && message !== '', `${file}: ${reason} ${message}`)
    const good = problemsOf(object).filter(({ reason }) =>
      /(NotApplicable|NotActive|Valid|Configured)$/.test(reason),
    )
    t.same(
      good.filter(({ reason }) => !reason.endsWith('NotValid')),
      [],
      file,
    )
  }
})

t.test('state: the cause takes precedence over its summary', async (t) => {
  t.match(stateOf(caseOf('virtualmcpserver/group-missing-keeps-children')), {
    ready: 'False',
    reason: 'GroupRefNotFound',
  })
  t.match(stateOf(caseOf('mcpserver/bad-pod-template-keeps-children')), {
    reason: 'InvalidPodTemplateSpec',
    rollout: 'stalled',
  })
  t.match(stateOf(caseOf('mcpserver/running')), { ready: 'True', rollout: 'none' })
  const object = { metadata: { generation: 2 }, status: { observedGeneration: 1 } }
  const later = Date.parse('2026-01-02T00:00:00Z')
  t.match(stateOf(object, later), { ready: 'Unknown', reason: 'NotReconciled' })
  const fresh = { ...object, metadata: { generation: 2, creationTimestamp: '2026-01-01T23:59:30Z' } }
  t.match(stateOf(fresh, later), { ready: 'Unknown', reason: 'NotObserved' })
  t.match(stateOf({ ...object, metadata: { deletionTimestamp: 'x' } }), {
    ready: 'False',
    reason: 'Terminating',
  })
})

const container = (state: object, more: object = {}) => ({
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'mcp', ready: false, restartCount: 0, state, ...more }],
  },
})

t.test('state: a problem that blocks Ready comes before other problems', async (t) => {
  const told = 'spec.tls.secretName: Secret tls: tls.crt: contains no PEM certificate'
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: 'False',
    reason,
    message,
  })
  const route = condition('ExposureReady', 'HostnameClaimed', 'a.example.com belongs to another server')
  const certificate = condition('TLSReady', 'TLSSecretInvalid', told)
  for (const ready of [
    condition('Ready', 'TLSSecretInvalid', told),
    condition('Ready', 'NotReady', `${told}; and`),
  ]) {
    const metadata = { generation: 1 }
    const object = { metadata, status: { observedGeneration: 1, conditions: [route, ready, certificate] } }
    t.match(stateOf(object), { ready: 'False', reason: 'TLSSecretInvalid', message: told })
    const reasons = problemsOf(object).map(({ reason }) => reason)
    t.strictSame(reasons.slice(0, 2), ['TLSSecretInvalid', 'HostnameClaimed'])
  }
})

t.test('pods: waiting, ended and unscheduled containers', async (t) => {
  const rows: readonly (readonly [object, object | undefined])[] = [
    [{ status: { phase: 'Succeeded' } }, undefined],
    [{ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }, undefined],
    [
      {
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes' }],
        },
      },
      { reason: 'Unschedulable', message: '0/3 nodes' },
    ],
    [
      container({ waiting: { reason: 'ImagePullBackOff', message: 'no such tag' } }),
      { reason: 'ImagePullBackOff', message: 'container mcp: no such tag' },
    ],
    [container({ waiting: { reason: 'ContainerCreating' } }), { isPassing: true }],
    [
      container(
        { waiting: { reason: 'CrashLoopBackOff' } },
        {
          restartCount: 2,
          lastState: { terminated: { exitCode: 1, reason: 'Error', message: 'token abc' } },
        },
      ),
      {
        reason: 'CrashLoopBackOff',
        message: 'container mcp keeps exiting: 2 restarts, the last one after exit code 1 (Error)',
      },
    ],
    [container({ running: {} }), { reason: 'ContainersNotReady', container: 'mcp' }],
    [
      container({ terminated: { exitCode: 3, reason: 'Error' } }),
      { message: 'container mcp has terminated, exit code 3 (Error)' },
    ],
    [{ status: { phase: 'Failed', reason: 'Evicted', message: 'low on memory' } }, { reason: 'Evicted' }],
    [
      { metadata: { deletionTimestamp: 'x' }, status: { phase: 'Running' } },
      { reason: 'Terminating', isPassing: true },
    ],
  ]
  for (const [pod, problem] of rows) {
    const found = podProblem({ ...pod })
    if (problem === undefined) t.equal(found, undefined)
    else t.match(found, problem)
    t.notMatch(JSON.stringify(found ?? ''), /token abc/, 'output of a container is not shown')
  }
})

t.test('conclusion: the pod comes before its workload, and a healthy object has none', async (t) => {
  const state = { ready: 'False', reason: 'X', message: 'y', rollout: 'stalled' } as const
  const workload = {
    section: 'workload',
    object: 'Deployment a',
    result: 'failed',
    message: 'stuck',
  } as const
  const pod = { section: 'pod', object: 'Pod a-1', result: 'failed', message: 'ended', step: 'look' } as const
  t.match(conclude(state, [workload, pod]), { cause: 'Pod a-1: ended', step: 'look', isWell: false })
  t.match(conclude(state, []), { cause: 'X: y', isWell: false })
  t.match(conclude({ ...state, ready: 'True', rollout: 'none' }, []), { isWell: true, step: null })
})

t.test("table: the truncated column gets the remaining width, and ages have kubectl's format", async (t) => {
  const columns = [{ title: 'NAME' }, { title: 'MESSAGE', isCut: true }, { title: 'AGE' }]
  const table = new Table(columns, 40)
  t.same(table.lines([['one', 'a message that is longer than the line\nof a terminal', '1s']]), [
    'NAME   MESSAGE                       AGE',
    'one    a message that is longer t…   1s',
  ])
  t.same(table.lines([['another', 'b', '2s']]).length, 1, 'one heading')
  t.equal(new Table(columns, undefined).lines([['a', 'b'.repeat(200), '1s']])[1]?.includes('…'), false)
  const ages = [0, 59_000, 61_000, 3_600_000, 100 * 86_400_000, 2 * 86_400_000 + 3 * 3_600_000]
  t.same(ages.map(ageText), ['0s', '59s', '1m1s', '1h', '100d', '2d3h'])
})

t.test('lists: all pages are read, an expired page is resumed, and a failure ends the list', async (t) => {
  const list = { group: 'gatehouse.dev', version: 'v1beta1', plural: 'mcpgroups' }
  const asked: string[] = []
  const answers = [
    { status: 200, body: { items: [{ n: 1 }], metadata: { continue: 'a' } } },
    { status: 410, body: { metadata: { continue: 'b' } } },
    { status: 200, body: { items: [{ n: 2 }], metadata: {} } },
  ]
  const get: ClusterAccess['get'] = async (_, query) => {
    asked.push(query?.['continue'] ?? '')
    return answers[asked.length - 1] ?? { status: 500, body: {} }
  }
  const pages = await Array.fromAsync(pagesOf(get, list))
  t.same(pages, [{ items: [{ n: 1 }] }, { items: [{ n: 2 }] }])
  t.same(asked, ['', 'a', 'b'])
  t.same(await Array.fromAsync(pagesOf(async () => ({ status: 403, body: {} }), list)), [{ status: 403 }])
  t.same(await Array.fromAsync(pagesOf(() => Promise.reject(new Error('gone')), list)), [
    { status: undefined },
  ])
})
