/** The wrapper around the CEL library: conversion of values, and errors of this product. */
import t from 'tap'
import { compileBoundedCel, compileCel } from '../../../schemas/index.ts'

await t.test('compileCel: evaluates plain values', async (t) => {
  const claims = { sub: 'alice', groups: ['admins', 'dev'], nested: { level: 3 }, verified: true, none: null }
  const cases: readonly (readonly [string, unknown])[] = [
    ["'admins' in claims.groups", true],
    ["claims.sub.startsWith('al')", true],
    ["claims.sub.matches('^a.*e$')", true],
    ['has(claims.email)', false],
    ['claims.nested.level > 2', true],
    ["claims.groups.exists(g, g == 'dev') && claims.verified", true],
    ["claims.sub + '!'", 'alice!'],
    ['size(claims.groups)', 2n],
    ['claims.groups.map(g, size(g))', [6n, 3n]],
    ["{'a': claims.sub}", new Map([['a', 'alice']])],
    ['claims.none == null', true],
    ["duration('90s') > duration('1m')", true],
  ]
  for (const [text, value] of cases) t.same(compileCel(text)({ claims }), value, text)
})

await t.test('compileCel: a number becomes a double, a bigint an int', async (t) => {
  t.equal(compileCel('n / 2.0')({ n: 3 }), 1.5)
  t.equal(compileCel('n / 2')({ n: 3n }), 1n)
})

await t.test('compileCel: a syntax error is reported with its position', async (t) => {
  for (const text of ['claims.groups[', '', '1 +', 'a b', "'open"]) {
    t.throws(() => compileCel(text), { code: 'INVALID_CONFIG', message: /^not a CEL expression: / }, text)
  }
})

await t.test('compileCel: a failed evaluation throws instead of returning false', async (t) => {
  t.throws(() => compileCel('claims.email')({ claims: {} }), {
    code: 'INVALID_CONFIG',
    message: /^CEL evaluation failed: /,
  })
  t.throws(() => compileCel('unknown == 1')({}), { code: 'INVALID_CONFIG' })
  t.throws(() => compileCel('1 / 0')({}), { code: 'INVALID_CONFIG' })
  t.throws(() => compileCel('x')({ x: () => 1 }), {
    code: 'INVALID_CONFIG',
    message: 'CEL does not support a function',
  })
})

await t.test('compileCel: a hostile regular expression takes linear time', async (t) => {
  t.equal(compileCel("s.matches('^(a+)+$')")({ s: `${'a'.repeat(5000)}b` }), false)
})

await t.test('compileBoundedCel: nested loops over claims are rejected', async (t) => {
  for (const text of [
    "'admins' in claims.groups",
    "claims.groups.exists(g, g.startsWith('team-'))",
    "claims.groups.exists(g, g in ['a', 'b', 'c'])",
    "['a', 'b'].all(prefix, claims.groups.exists(g, g.startsWith(prefix)))",
    "claims.groups.exists(g, g == 'a') && claims.roles.exists(r, r == 'b')",
  ])
    t.doesNotThrow(() => compileBoundedCel(text), text)
  for (const text of [
    'claims.groups.all(a, claims.groups.exists(b, a == b))',
    'claims.groups.all(a, a in claims.groups)',
    'claims.groups.map(a, claims.groups.filter(b, a == b)).size() > 0',
    'claims.groups.all(a, claims.groups.all(b, claims.groups.all(c, a + b == c)))',
  ])
    t.throws(() => compileBoundedCel(text), { code: 'INVALID_CONFIG', message: /^too expensive/ }, text)
  t.equal(compileBoundedCel("claims.groups.exists(g, g == 'b')")({ claims: { groups: ['a', 'b'] } }), true)
})
