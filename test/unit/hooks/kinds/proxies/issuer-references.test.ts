/** Rules for oidcConfigRefs that the schema cannot express. */
import t from 'tap'
import { issuerReferenceViolations } from '../../../../../hooks/runtime-config/issuers.ts'

const at = 'spec.oidcConfigRefs'
const entry = (name: string, more: object = {}) => ({ name, audience: name, ...more })
const violations = (...references: ReturnType<typeof entry>[]) =>
  issuerReferenceViolations(references, at).map(({ path }) => path)

t.test('only the first issuer has the resource URL and the scopes, and no prefixes', async (t) => {
  t.same(issuerReferenceViolations(undefined, at), [])
  t.same(violations(entry('a', { resourceUrl: 'https://a.example', scopes: ['x'] }), entry('b')), [])
  t.same(violations(entry('a', { subjectPrefix: 'a:', groupPrefix: '' })), [
    `${at}[0].subjectPrefix`,
    `${at}[0].groupPrefix`,
  ])
  t.same(violations(entry('a'), entry('b', { resourceUrl: 'https://b.example', scopes: [] })), [
    `${at}[1].resourceUrl`,
    `${at}[1].scopes`,
  ])
})

t.test('no subjectPrefix is the beginning of another', async (t) => {
  const prefixed = (...prefixes: string[]) =>
    violations(entry('a'), ...prefixes.map((subjectPrefix, index) => entry(`b${index}`, { subjectPrefix })))
  t.same(prefixed('b:', 'c:', 'bb:'), [])
  t.same(prefixed('b:', 'b:'), [`${at}[2].subjectPrefix`])
  t.same(prefixed('b:', 'b:c:'), [`${at}[2].subjectPrefix`])
  t.same(prefixed('b:c:', 'b:'), [`${at}[2].subjectPrefix`])
})

t.test('no groupPrefix is the beginning of another, but issuers can share their groups', async (t) => {
  const prefixed = (...prefixes: string[]) =>
    violations(entry('a'), ...prefixes.map((groupPrefix, index) => entry(`b${index}`, { groupPrefix })))
  t.same(prefixed('b/', 'b/', '', '', 'c/'), [])
  t.same(prefixed('b/', 'b/c/'), [`${at}[2].groupPrefix`])
  t.same(prefixed('b/c/', 'b/'), [`${at}[2].groupPrefix`])
})
