/** Problems that running pods report become a condition of the virtual server until they are resolved. */
import t from 'tap'
import { server, virtual, world } from '../../../hooks/resources.ts'
import type { Condition } from '../../../hooks/world.ts'

t.test('each reported problem appears once, with its type', async (t) => {
  const w = world(virtual(), server('files')).ready()
  const told = (): Condition | undefined =>
    (w.get('VirtualMCPServer', 'door')['status'] as { conditions: Condition[] }).conditions.find(
      ({ type }) => type === 'ServesWithoutProblems',
    )
  t.equal(told(), undefined)
  const annotations = w.get('ConfigMap', 'door-vmcp-config').metadata['annotations'] as Record<string, string>
  const report = (problems: unknown) =>
    JSON.stringify({
      observedAt: '2026-01-01T00:00:00Z',
      configChecksum: annotations['gatehouse.dev/content-checksum'],
      backends: [{ name: 'files', status: 'ready' }],
      problems,
    })
  const storage = {
    type: 'session_storage',
    since: '2026-01-01T00:00:00Z',
    message: 'session storage is unreachable',
    fix: 'check that Redis runs',
  }
  const ofBackend = {
    type: 'backend_health',
    backend: 'files',
    message: 'backend files is unhealthy',
    fix: 'x',
  }
  const conflict = { type: 'name_conflict', message: 'x'.repeat(1_000), fix: 'rename it' }
  w.setData('door-vmcp-status', {
    'a.json': report([storage, ofBackend, 'nonsense', { type: 7 }]),
    'b.json': report([storage, conflict]),
  }).settle()
  t.match(told(), {
    status: 'False',
    reason: 'ProblemsReported',
    message:
      /^backend files is unhealthy: x \(backend_health\); session storage is unreachable: check that Redis runs \(session_storage\); x+…: rename it \(name_conflict\)$/,
  })
  const many = Array.from({ length: 30 }, (_, i) => ({
    type: 'name_conflict',
    message: `name ${i}`,
    fix: 'y',
  }))
  w.setData('door-vmcp-status', { 'a.json': report(many) }).settle()
  t.match(told(), { message: /; and 10 more$/ })
  w.setData('door-vmcp-status', { 'a.json': report([]) }).settle()
  t.equal(told(), undefined, 'over')
  const refused = { type: 'config_refused', message: 'the new configuration cannot be used', fix: 'z' }
  const old = JSON.stringify({ ...JSON.parse(report([refused])), configChecksum: 'of-the-file-before' })
  w.setData('door-vmcp-status', { 'a.json': old }).settle()
  t.match(
    told(),
    { message: /config_refused/ },
    'a pod that rejects the current file reports on the previous one',
  )
})
