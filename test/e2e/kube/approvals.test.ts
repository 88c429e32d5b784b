/**
 * Approves locks in a cluster with the command that the console shows, run by a shell and kubectl against a real API
 * server.
 */
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import t from 'tap'
import { patchCommand } from '../../../runtime/tools/lock/approval/by-hand.ts'
import type { Reviewed } from '../../../runtime/tools/lock/approval/change.ts'
import { makeApprover } from '../../../runtime/tools/lock/approval/approver.ts'
import { lockSpec } from '../../../runtime/tools/lock/manifest.ts'
import { vmcpEnvironment } from '../../../runtime/config/index.ts'
import { runtimeToolLock, type ToolLockSpec } from '../../../schemas/index.ts'
import { target } from '../../helpers/console/approvals.ts'
import { kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { approved, changed, other } from '../../helpers/vmcp/pinning.ts'

t.setTimeout(300_000)

const listing = {
  tools: [
    { key: 'list', text: other },
    { key: 'read', text: approved },
  ],
  prompts: [],
  templates: [],
  instructions: undefined,
}
const big = '{"name":"list","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}'
const hostile = changed(approved, {
  description: "'; touch /tmp/x #\nPATCH\n$(id) `id` \\u0041 \u202e\u{e0041} \ud800",
})

await t.test('approvals with a real API server', { skip: kubeMissing() }, async (t) => {
  const kube = await startKubeApiserver(t)
  kube.must([
    'apply',
    '--server-side',
    '-f',
    join(resolve(import.meta.dirname, '../../../manifests'), 'crds'),
  ])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  const spec = lockSpec(target, listing, undefined)
  const [list, read] = spec.tools ?? []
  const noted = { ...spec, tools: [list, { ...read, note: 'since May' }] }
  const object = {
    apiVersion: 'gatehouse.dev/v1beta1',
    kind: 'MCPToolLock',
    metadata: { name: 'files' },
    spec: noted,
  }
  kube.must(['apply', '-f', '-'], JSON.stringify(object))
  const present = (): ToolLockSpec => kube.get(['mcptoollock', 'files']).spec
  const run = (reviewed: Partial<Reviewed>, of = present()) => {
    const lock = runtimeToolLock(of, 'files', 'files')
    const whole = {
      kind: 'tool',
      name: 'read',
      state: 'changed',
      offered: undefined,
      perCaller: false,
      ...reviewed,
    }
    const command = patchCommand(lock, 'default', whole as Reviewed)
    t.match(command, /^[\x20-\x7e\n]*$/, 'ASCII characters only')
    const env = { ...process.env, KUBECONFIG: kube.kubeconfig }
    const { status, stderr } = spawnSync('sh', ['-c', command], { env, encoding: 'utf8' })
    return { status, stderr }
  }
  const before = present()

  t.match(run({ offered: hostile }), { status: 0 }, 'changed')
  t.strictSame(present().tools?.[1], { name: 'read', definitionText: hostile, note: 'since May' })
  t.match(
    run({ offered: changed(approved, { title: 'x' }) }, before),
    { status: 1, stderr: /invalid/ },
    'the definition changed in the meantime',
  )
  t.match(run({ offered: approved }), { status: 0 }, 'the object form again')
  t.strictSame(present().tools, before.tools)
  t.match(run({ offered: hostile, perCaller: true }), { status: 0 }, 'a variant')
  t.match(run({ offered: big.replace('list', 'read'), perCaller: true }), { status: 0 }, 'another variant')
  t.equal(present().tools?.[1]?.variants?.length, 2)
  t.match(run({ offered: changed(approved, { title: 'x' }) }), { status: 0 }, 'replaces all variants')
  t.notOk(present().tools?.[1]?.variants)
  t.match(run({ name: 'list', offered: big }), { status: 0 }, 'a number that JavaScript cannot represent')
  t.match(
    run({ name: 'write', state: 'new', offered: changed(other, { name: 'write' }) }),
    { status: 0 },
    'new',
  )
  t.match(
    run({ kind: 'prompt', name: 'ask', state: 'new', offered: '{"name":"ask"}' }),
    { status: 0 },
    'the first prompt',
  )
  t.match(
    run(
      { kind: 'prompt', name: 'tell', state: 'new', offered: '{"name":"tell"}' },
      { ...present(), prompts: [] },
    ),
    { status: 1 },
    'a first prompt, when another user approved one before',
  )
  t.same(
    present().prompts?.map(({ name }) => name),
    ['ask'],
    'the approval of another user stays',
  )
  t.match(
    run({ name: 'write', state: 'new', offered: other.replace('list', 'write') }, before),
    { status: 1 },
    'a new tool that another user has approved',
  )
  const alone = present()
  t.match(run({ offered: hostile, perCaller: true }), { status: 0 }, 'a variant added since the review')
  for (const [what, reviewed] of [
    ['is not removed', { offered: changed(approved, { title: 'y' }) }],
    ['is not removed with the tool', { state: 'removed' }],
    ['is not replaced', { offered: changed(approved, { title: 'y' }), perCaller: true }],
  ] as const)
    t.match(run(reviewed, alone), { status: 1 }, what)
  t.equal(present().tools?.find(({ name }) => name === 'read')?.variants?.length, 1)
  t.match(run({ name: 'list', state: 'removed' }), { status: 0 }, 'removed')
  t.strictSame(
    present().tools?.map(({ name }) => name),
    ['read', 'write'],
  )
  t.match(run({ name: 'read', state: 'removed' }, before), { status: 1 }, 'removed, with an older lock')
  t.match(run({ kind: 'prompt', name: 'ask', state: 'removed' }), { status: 0 })
  t.match(
    run({ kind: 'instructions', name: '', state: 'new', offered: '"Read\\nfirst"' }),
    { status: 0 },
    'instructions',
  )
  t.equal(present().server?.instructions, 'Read\nfirst')
  t.match(
    run(
      { kind: 'instructions', name: '', offered: '"More"' },
      { ...before, server: { instructions: 'Of before' } },
    ),
    { status: 1 },
    'instructions added since the review',
  )
  t.match(run({ kind: 'instructions', name: '', offered: '"More"' }), { status: 0 })
  t.match(run({ kind: 'instructions', name: '', state: 'removed' }), { status: 0 })
  t.notOk(present().server?.instructions)
})

t.test('the console of a pod shows the command, and cannot approve', async (t) => {
  const lock = runtimeToolLock(lockSpec(target, listing, undefined), 'files', 'files')
  const reviewed = {
    backend: 'files',
    kind: 'tool',
    name: 'read',
    state: 'changed',
    parts: ['text'],
    digest: '',
    approved: undefined,
    approvedDigest: undefined,
    changing: false,
    diff: [],
    offered: hostile,
    perCaller: false,
  } as const
  const pod = await makeApprover({ env: { [vmcpEnvironment.namespace]: 'team' }, toolLocks: () => [lock] })
  t.match(pod.way(reviewed), { way: 'command', command: /^kubectl patch mcptoollock files -n team / })
  await t.rejects(pod.approve(reviewed), { code: 'LOCK_NOT_WRITTEN' })
  const file = await makeApprover({ env: {}, toolLocks: () => [lock] })
  t.match(file.way(reviewed), { way: 'none', why: /toolLocks/ })
  const dev = await makeApprover({
    env: { [vmcpEnvironment.consoleManifests]: '["/nowhere"]' },
    toolLocks: () => [{ ...lock, name: undefined } as never],
  })
  t.match(dev.way(reviewed), { way: 'none', why: /--pin-first/ })
  await t.rejects(dev.approve(reviewed), { code: 'LOCK_NOT_WRITTEN' })
  const odd = await makeApprover({ env: { [vmcpEnvironment.namespace]: 'x; id' }, toolLocks: () => [lock] })
  t.match(odd.way(reviewed), { way: 'none' })
  t.match(pod.way({ ...reviewed, backend: 'other' }), { way: 'none', why: /no lock/ })
})
