/** What running pods report as wrong with a virtual server is a condition, as long as it lasts. */
import t from 'tap'
import { server, virtual, world } from '../../../hooks/resources.ts'
import type { Condition } from '../../../hooks/world.ts'

t.test('problems of the server as such, once each, and none of single backends', async (t) => {
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
    message: 'session storage cannot be reached',
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
    message: /^session storage cannot be reached: check that Redis runs; x+…: rename it$/,
  })
  const many = Array.from({ length: 30 }, (_, i) => ({
    type: 'name_conflict',
    message: `name ${i}`,
    fix: 'y',
  }))
  w.setData('door-vmcp-status', { 'a.json': report(many) }).settle()
  t.match(told(), { message: /; and 10 more$/ })
  w.setData('door-vmcp-status', { 'a.json': report([ofBackend]) }).settle()
  t.equal(told(), undefined, 'over')
})
