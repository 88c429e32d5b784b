import t from 'tap'
import { ResourceLinks } from '../../../../runtime/vmcp/catalog/resource-links.ts'
import { noAbilities } from '../../../../runtime/vmcp/model/client.ts'
import { makeCaller } from '../../../../runtime/net/index.ts'
import type { OperationClient } from '../../../../runtime/vmcp/model/session.ts'
import { ownOperation } from '../../../../runtime/vmcp/model/operation.ts'
import { resultOutcome } from '../../../../runtime/vmcp/model/outcome.ts'

function clientOf(subject: string): OperationClient {
  return {
    era: 'stateless',
    caller: makeCaller({ issuer: 'https://issuer.example', subject, claims: {} }),
    abilities: noAbilities,
    headers: {},
  } as unknown as OperationClient
}

function handOut(links: ResourceLinks, client: OperationClient, backend: string, uris: readonly string[]) {
  const call = ownOperation(client, 'tools/call', { name: 'x' }, new AbortController().signal)
  const content = uris.map((uri) => ({ type: 'resource_link', uri, name: 'l' }))
  links.remember(call, backend, resultOutcome({ content }))
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${i}`)
}

t.test('a backend that returns many links does not evict the links of another backend', (t) => {
  const links = new ResourceLinks()
  const ada = clientOf('ada')
  handOut(links, ada, 'good', ['good://1'])
  for (let i = 0; i < 5; i++) handOut(links, ada, 'greedy', numbered(`greedy://${i}/`, 900))
  t.equal(links.backendOf(ada, 'good://1'), 'good')
  t.equal(links.backendOf(ada, 'greedy://4/899'), 'greedy')
  t.equal(links.backendOf(ada, 'greedy://0/0'), undefined, 'its own oldest links are dropped')
  t.end()
})

t.test('short links count with the memory that they use', (t) => {
  const links = new ResourceLinks()
  const owners = 180
  for (let i = 0; i < owners; i++) handOut(links, clientOf(`user-${i}`), 'a', numbered('', 1_000))
  t.equal(links.backendOf(clientOf('user-0'), '1'), undefined)
  t.equal(links.backendOf(clientOf(`user-${owners - 1}`), '1'), 'a')
  t.end()
})
