/** The order of versions, which `gatehouse add --update` uses to reject a rollback. */
import t from 'tap'
import { isNewer } from '../../../runtime/tools/registry/version.ts'

/** Each version is newer than the previous one. Source: Semantic Versioning 2.0.0, section 11. */
const ordered = [
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '1.2.9',
  '1.2.10',
  'v2.0',
  '9007199254740992.0',
  '9007199254740993.0',
]

t.test('later versions are newer, and no version is newer than itself', (t) => {
  for (const [index, version] of ordered.entries())
    for (const [other, than] of ordered.entries())
      t.equal(isNewer(version, than), index > other, `${version} and ${than}`)
  t.end()
})

t.test('dates have an order', (t) => {
  t.ok(isNewer('2026.01.10', '2025.12.31'))
  t.ok(isNewer('2026-02-01', '2026-01-15'))
  t.notOk(isNewer('2026-01-15', '2026-02-01'))
  t.end()
})

t.test('a version without an order, or with other build metadata only, is not newer', (t) => {
  for (const [version, than] of [
    ['preview', '1.0.0'],
    ['2.0.0', 'preview'],
    ['2.0.0rc1', '1.0.0'],
    ['1.0.0+2', '1.0.0+1'],
  ] as const)
    t.notOk(isNewer(version, than), `${version} and ${than}`)
  t.end()
})
