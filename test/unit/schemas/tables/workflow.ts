/** docs/reference/specification/virtual-server.md#compositeTools: compositeTools, inline and as VirtualMCPCompositeToolDefinition. */
import {
  absent,
  type Doc,
  document,
  durationRow,
  type Json,
  notInteger,
  notString,
  type Table,
} from './table.ts'
import { virtualServer } from './virtual-server.ts'

const tool = {
  name: 'triage',
  description: 'd',
  parameters: { type: 'object', properties: { a: { type: 'string', 'x-any': [1] } } },
  steps: [{ id: 'one', tool: 'github.list' }],
}

function rows(at: string): Table['rows'] {
  const step = `${at}.steps[0]`
  const responses: readonly Json[] = ['skip_remaining', 'abort', 'continue']
  return [
    { id: '', at: `${at}.name`, required: true, bad: ['', 1] },
    { id: '', at: `${at}.description`, good: [absent, ''], bad: notString },
    { id: '', at: `${at}.parameters`, good: [absent, { anything: { goes: [1] } }], bad: ['x', []] },
    { id: '3.config.compositeTools.steps', at: `${at}.steps`, required: true, bad: [[], {}] },
    durationRow('', `${at}.timeout`),
    {
      id: '',
      at: `${at}.annotations`,
      good: [absent, { title: 't', readOnlyHint: null }],
      bad: [{ hint: true }],
      failure: '*',
    },
    { id: '', at: `${at}.output`, good: [absent, { properties: {} }], bad: [{}], failure: '*' },
    {
      id: '3.config.compositeTools.output.properties.type',
      at: `${at}.output`,
      good: ['string', 'integer', 'number', 'boolean', 'object', 'array'].map((type) => ({
        properties: { a: { type, value: '{{.x}}', default: { any: 1 } } },
      })),
      bad: [
        { properties: { a: {} } },
        { properties: { a: { type: 'text' } } },
        { properties: { a: { type: 'string', vaule: 'x' } } },
      ],
      failure: '*',
    },
    { id: '3.config.compositeTools.steps.id', at: `${step}.id`, required: true, bad: ['', 1] },
    {
      id: '3.config.compositeTools.steps.id',
      at: `${at}.steps[1]`,
      good: [{ id: 'two', tool: 'a.b' }],
      bad: [{ id: 'one', tool: 'a.b' }],
    },
    {
      id: '3.config.compositeTools.steps.type',
      at: `${step}.type`,
      default: 'tool',
      good: ['elicitation', 'forEach'],
      bad: ['', 'loop', 'foreach'],
    },
    { id: '', at: `${step}.arguments`, good: [absent, { a: { b: [1, null] } }], bad: [[], 'x'] },
    { id: '', at: `${step}.defaultResults`, good: [absent, { a: 1 }, 'text', 5, [1]] },
    { id: '', at: `${step}.dependsOn`, good: [absent, ['x']], bad: ['x', ['a', 'a']], failure: '*' },
    durationRow('', `${step}.timeout`),
    {
      id: '3.config.compositeTools.steps.onError.action',
      at: `${step}.onError.action`,
      default: 'abort',
      good: ['continue'],
      bad: ['ignore', ''],
    },
    {
      id: '',
      at: `${step}.onError`,
      good: [absent, { action: 'retry', retryCount: 1, retryDelay: '1s' }],
      bad: [{ action: 'retry' }, { action: 'retry', retryCount: 0 }, { maxRetries: 3 }],
      failure: '*',
    },
    ...['onDecline', 'onCancel'].map((field) => ({
      id: `3.config.compositeTools.steps.${field}`,
      at: `${step}.${field}.action`,
      default: 'abort',
      good: responses,
      bad: ['retry', ''],
    })),
    {
      id: '',
      at: `${step}.schema`,
      good: [absent, { type: 'object', properties: { a: { enum: ['x'] } } }],
      bad: ['x'],
    },
    { id: '3.config.compositeTools.steps.itemVar', at: `${step}.itemVar`, default: 'item', bad: notString },
    {
      id: '3.limit.forEach',
      at: `${step}.maxIterations`,
      default: 100,
      good: [1, 1000],
      bad: [0, 1001, ...notInteger],
    },
    {
      id: '3.limit.forEach',
      at: `${step}.maxParallel`,
      default: 10,
      good: [1, 50],
      bad: [0, 51, ...notInteger],
    },
    {
      id: '',
      at: `${step}.step`,
      good: [
        absent,
        { tool: 'a.b' },
        { id: 'i', type: 'tool', tool: 'a.b', arguments: { x: '{{.forEach.item}}' } },
      ],
      bad: [{}, { tool: '' }, { type: 'forEach', tool: 'a.b' }, { tool: 'a.b', message: 'x' }],
      failure: '*',
    },
    { id: '', at: `${step}.maxRetries`, bad: [1] },
  ]
}

const inline: Doc = virtualServer({
  config: {
    compositeTools: [
      { ...tool, steps: [{ id: 'one', tool: 'github.list', onError: {}, onDecline: {}, onCancel: {} }] },
    ],
  },
})
const definition = document('VirtualMCPCompositeToolDefinition', {
  ...tool,
  steps: [{ id: 'one', tool: 'github.list', onError: {}, onDecline: {}, onCancel: {} }],
})

export const workflowTables: readonly Table[] = [
  { name: 'config.compositeTools', base: inline, rows: rows('spec.config.compositeTools[0]') },
  {
    name: 'config.compositeTools names',
    base: inline,
    rows: [
      {
        id: '3.config.compositeTools.name',
        at: 'spec.config.compositeTools[1]',
        good: [{ ...tool, name: 'other' }],
        bad: [tool],
      },
    ],
  },
  { name: 'VirtualMCPCompositeToolDefinition', base: definition, rows: rows('spec') },
]
