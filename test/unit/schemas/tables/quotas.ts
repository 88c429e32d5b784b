/** docs/guides/quotas.md: spec.config.quotas and spec.config.costs. */
import { absent, type Doc, type Json, notInteger, notString, type Table } from './table.ts'
import { virtualServer } from './virtual-server.ts'

const at = 'spec.config.quotas'
const quota = { name: 'daily', per: 'server', window: 'day', limit: 10 }
const withQuotas = (quotas: readonly Json[], more: Doc = {}): Doc =>
  virtualServer({ config: { quotas }, ...more })

const list: Table = {
  name: 'config.quotas',
  base: withQuotas([quota]),
  rows: [
    {
      id: '',
      at,
      good: [absent, [], Array.from({ length: 32 }, (_, i) => ({ ...quota, name: `q${i}` }))],
      bad: [
        'daily',
        {},
        Array.from({ length: 33 }, (_, i) => ({ ...quota, name: `q${i}` })),
        [quota, { ...quota, window: 'month' }],
      ],
      failure: '*',
    },
    {
      id: '',
      at: `${at}[0].name`,
      required: true,
      good: ['a', 'searches-a-day', 'a'.repeat(63)],
      bad: ['', 'A', '-a', 'a-', 'a b', 'a:b', 'a'.repeat(64), ...notString],
    },
    {
      id: '',
      at: `${at}[0].window`,
      required: true,
      good: ['hour', 'day', 'month'],
      bad: ['', 'week', 'Day', '24h', 1],
    },
    {
      id: '',
      at: `${at}[0].limit`,
      required: true,
      good: [1, 1e15],
      bad: [0, -1, 1e15 + 1, ...notInteger],
    },
    {
      id: '',
      at: `${at}[0].unit`,
      default: 'calls',
      good: ['calls', 'cost', 'resultBytes'],
      bad: ['', 'bytes', 1],
    },
    { id: '', at: `${at}[0].action`, default: 'block', good: ['warn', 'block'], bad: ['', 'deny', true] },
    { id: '', at: `${at}[0].match`, good: [absent, {}], bad: ['echo', []] },
    {
      id: '',
      at: `${at}[0].match.backend`,
      good: [absent, 'web'],
      bad: ['', 'a'.repeat(254), ...notString],
    },
    { id: '', at: `${at}[0].match.tool`, good: [absent, 'search'], bad: ['', 'a'.repeat(257), ...notString] },
    { id: '', at: `${at}[0].burst`, bad: [1] },
    { id: '', at: `${at}[0].per`, required: true, good: ['server'], bad: ['', 'caller', 'Server', 1] },
    {
      id: '',
      at: `${at}[0].per`,
      bad: ['user', 'group', 'client'],
      failure: 'spec.incomingAuth.type',
    },
  ],
}

const callers: Table = {
  name: 'config.quotas with oidc',
  base: withQuotas([quota], {
    incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'login', audience: 'door' } },
  }),
  rows: [{ id: '', at: `${at}[0].per`, good: ['user', 'group', 'client', 'server'] }],
}

const costs: Table = {
  name: 'config.costs',
  base: virtualServer({ config: { costs: { web: 1 } } }),
  rows: [
    {
      id: '',
      at: 'spec.config.costs',
      good: [absent, {}, { 'web/search': 0, web: 1e12 }],
      bad: [[], 'web', 1],
    },
    { id: '', at: 'spec.config.costs.web', bad: [-1, 0.5, 1e12 + 1, ...notInteger] },
  ],
}

export const quotaTables: readonly Table[] = [list, callers, costs]
