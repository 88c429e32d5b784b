/** The guide's health check for Argo CD, run by Lua 5.1 on the status of every recorded case of the hooks. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { healthOf, luaMissing as skip } from '../../helpers/hooks/argo-health.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}
interface Shown {
  readonly metadata: { readonly generation?: number }
  readonly status?: { readonly observedGeneration?: number; readonly conditions?: readonly Condition[] }
}

/** The guide's rule in TypeScript: the worst status of any condition. */
function expected({ metadata, status }: Shown): string {
  if (!status || status.observedGeneration !== metadata.generation) return 'Progressing'
  const value = (type: string) => status.conditions?.find((one) => one.type === type)?.status
  if (value('Stalled') === 'True') return 'Degraded'
  const isDone = value('Reconciling') !== 'True' && ['True', undefined].includes(value('Ready'))
  return isDone ? 'Healthy' : 'Progressing'
}

t.test('Argo CD: the health of every recorded status', { skip }, async (t) => {
  const cases = globSync('test/hooks/*/*/response.json').flatMap((file) => {
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
    const { parent } = read(join(file, '../request.json')) as { parent?: Shown }
    const { status } = read(file) as Pick<Shown, 'status'>
    return parent && status ? [{ file, obj: { metadata: parent.metadata, status } }] : []
  })
  t.ok(cases.length > 100, `${cases.length} cases`)
  const found = healthOf(cases.map(({ obj }) => obj))
  t.same(
    found.map((health, index) => `${cases[index]?.file} ${health}`),
    cases.map(({ file, obj }) => `${file} ${expected(obj)}`),
  )
  t.same([...new Set(found)].sort(), ['Degraded', 'Healthy', 'Progressing'])
})

t.test('Argo CD: a status that is not up to date is not healthy', { skip }, async (t) => {
  const metadata = { generation: 2 }
  const ready = { type: 'Ready', status: 'True' }
  const stalled = { type: 'Stalled', status: 'True', message: 'a "Secret" is\nmissing' }
  t.same(
    healthOf([
      { metadata },
      { metadata, status: { observedGeneration: 1, conditions: [ready] } },
      { metadata, status: { observedGeneration: 2, conditions: [ready] } },
      { metadata, status: { observedGeneration: 2, conditions: [ready, stalled] } },
      { metadata, status: { observedGeneration: 2 } },
    ]),
    ['Progressing', 'Progressing', 'Healthy', 'Degraded', 'Healthy'],
  )
})
