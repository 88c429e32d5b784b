/**
 * A virtual server's own policies that name unknown backends: a condition reports them, and the server keeps running.
 */
import t from 'tap'
import { authzConfig, entry, policy, virtual, world } from '../resources.ts'

const about = (backend: string): string => `forbid(principal, action, resource in Backend::"${backend}");`
const conditionOf = (...docs: Parameters<typeof world>) => {
  const settled = world(...docs).settle()
  const { conditions } = settled.get('VirtualMCPServer', 'door')['status'] as {
    conditions: { type: string; status: string; message: string }[]
  }
  return conditions.find(({ type }) => type === 'BackendNamesValidated')
}
const door = (...policies: string[]) =>
  virtual({
    incomingAuth: { type: 'anonymous', authzConfig: { type: 'inline', inline: { policies } } },
  })

t.test('BackendNamesValidated reports a misspelled backend in a policy', async (t) => {
  t.match(conditionOf(entry('github'), door(policy, about('githbu'))), {
    status: 'False',
    message:
      'spec.incomingAuth.authzConfig.inline.policies[1]: unknown backend "githbu"; did you mean "github"?',
  })
  t.match(conditionOf(entry('github'), door(policy, about('github'))), { status: 'True' })
  t.equal(conditionOf(entry('github'), door(policy)), undefined, 'nothing names a backend')
})

t.test('shared policies may name backends of other servers', async (t) => {
  const shared = authzConfig({ policies: [policy, about('elsewhere')] })
  const named = virtual({ incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } })
  t.equal(conditionOf(entry('github'), shared, named), undefined)
})
