/** Access tokens bound to a key: incoming tokens and the embedded authorization server. */
import { absent, type Table } from './table.ts'

/** Rows of `dpop`, in documents that authenticate callers. */
export function dpopRows(at: string): Table['rows'] {
  return [
    {
      id: '',
      at,
      good: [
        absent,
        {},
        { mode: 'optional', requireNonce: true, proofMaxAge: '10s', replay: 'none' },
        { mode: 'required', requireNonce: false, proofMaxAge: '5m', replay: 'store' },
        { mode: 'off' },
      ],
      bad: [
        'on',
        { mode: 'on' },
        { requireNonce: 'yes' },
        { replay: 'memory' },
        { other: 1 },
        ...['9s', '5m1s', '0s', '60', 60].map((proofMaxAge) => ({ proofMaxAge })),
      ],
      failure: '*',
    },
    { id: '', at: `${at}.mode`, default: 'off' },
    { id: '', at: `${at}.requireNonce`, default: false },
    { id: '', at: `${at}.proofMaxAge`, default: '60s' },
    { id: '', at: `${at}.replay`, default: 'store' },
  ]
}
