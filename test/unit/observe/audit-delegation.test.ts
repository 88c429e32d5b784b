/** The delegation chain of a token in the audit log. Source: RFC 8693 section 4.1. */
import t from 'tap'
import { delegationOf } from '../../../runtime/observe/audit/delegation.ts'

function nested(depth: number): Record<string, unknown> {
  let act: Record<string, unknown> = { sub: `agent-${depth}`, iss: 'https://idp.example' }
  for (let i = depth - 1; i > 0; i--) act = { sub: `agent-${i}`, act }
  return { sub: 'alice', act }
}

t.test('delegation: a token without act has no chain', async (t) => {
  t.equal(delegationOf({ sub: 'alice' }, 10), undefined)
})

t.test('delegation: the current actor comes first', async (t) => {
  t.same(delegationOf(nested(3), 10), {
    chain: [{ sub: 'agent-1' }, { sub: 'agent-2' }, { iss: 'https://idp.example', sub: 'agent-3' }],
    truncated: false,
    omitted: 0,
    malformed: false,
  })
})

t.test('delegation: actors beyond maxDelegationDepth are only counted', async (t) => {
  t.match(delegationOf(nested(5), 2), {
    chain: [{ sub: 'agent-1' }, { sub: 'agent-2' }],
    truncated: true,
    omitted: 3,
  })
  t.match(delegationOf(nested(1), 0), { chain: [], truncated: true, omitted: 1 })
})

t.test('delegation: an invalid actor ends the chain and is reported', async (t) => {
  for (const [act, reason] of [
    ['alice', 'act is not an object'],
    [[], 'act is not an object'],
    [null, 'act is not an object'],
    [{ iss: 'x' }, 'act has no sub'],
    [{ sub: 7 }, 'act has no sub'],
    [{ sub: 'a', iss: 7 }, 'iss in act is not a string'],
  ] as const) {
    t.match(delegationOf({ act }, 10), { chain: [], malformed: true, malformedReason: reason })
  }
  t.match(delegationOf({ act: { sub: 'a', act: 'b' } }, 10), { chain: [{ sub: 'a' }], malformed: true })
})

t.test('delegation: endless chains and names are bounded', async (t) => {
  const act: Record<string, unknown> = { sub: 'x'.repeat(10_000) }
  act['act'] = act
  const found = delegationOf({ act }, 10)
  t.match(found, { truncated: true, omitted: 990, malformed: true, malformedReason: 'the chain is too long' })
  t.equal(found?.chain[0]?.sub.length, 512)
})
