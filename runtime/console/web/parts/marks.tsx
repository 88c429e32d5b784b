/** Shows each state as a shape and a word, because color must not be the only signal. */
import type { Health, CallResultKind, ToolPinState, PinDriftState } from '../../api.ts'
import { texts } from '../texts.ts'

const shapes = {
  disc: <circle cx="6" cy="6" r="5" fill="currentColor" />,
  half: (
    <>
      <circle cx="6" cy="6" r="4.5" fill="none" stroke="currentColor" />
      <path d="M6 1.5a4.5 4.5 0 0 0 0 9z" fill="currentColor" />
    </>
  ),
  square: <rect x="1.5" y="1.5" width="9" height="9" fill="currentColor" />,
  triangle: <path d="M6 1l5.4 10H.6z" fill="currentColor" />,
  ring: <circle cx="6" cy="6" r="4.5" fill="none" stroke="currentColor" stroke-width="1.5" />,
  check: <path d="M1.5 6.5l3 3 6-7" fill="none" stroke="currentColor" stroke-width="1.8" />,
  cross: <path d="M2 2l8 8M10 2l-8 8" fill="none" stroke="currentColor" stroke-width="1.8" />,
  barred: (
    <>
      <circle cx="6" cy="6" r="4.7" fill="none" stroke="currentColor" stroke-width="1.5" />
      <path d="M2.8 9.2l6.4-6.4" stroke="currentColor" stroke-width="1.5" />
    </>
  ),
  play: <path d="M2.5 1.5l8 4.5-8 4.5z" fill="currentColor" />,
  dash: <path d="M2 6h8" stroke="currentColor" stroke-width="1.8" />,
  key: (
    <>
      <circle cx="3.5" cy="6" r="2.4" fill="none" stroke="currentColor" stroke-width="1.4" />
      <path d="M6 6h5.5M9.5 6v2.5" stroke="currentColor" stroke-width="1.4" />
    </>
  ),
} as const

type Shape = keyof typeof shapes
export type Tone = 'good' | 'warn' | 'bad' | 'soft' | 'plain'

/** Omit `word` when the adjacent text contains the same word. */
export function Mark({
  shape,
  tone,
  word,
}: {
  readonly shape: Shape
  readonly tone: Tone
  readonly word?: string
}) {
  return (
    <span class={`mark ${tone}`}>
      <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
        {shapes[shape]}
      </svg>
      {word}
    </span>
  )
}

const healthMarks: Readonly<Record<Health, readonly [Shape, Tone]>> = {
  healthy: ['disc', 'good'],
  degraded: ['half', 'warn'],
  unhealthy: ['square', 'bad'],
  unauthenticated: ['triangle', 'bad'],
  unknown: ['ring', 'soft'],
}

export function HealthMark({ health }: { readonly health: Health }) {
  const [shape, tone] = healthMarks[health] ?? healthMarks.unknown
  return <Mark shape={shape} tone={tone} word={texts.health[health] ?? health} />
}

const outcomeMarks: Readonly<Record<CallResultKind, readonly [Shape, Tone]>> = {
  success: ['check', 'good'],
  denied: ['barred', 'warn'],
  failure: ['cross', 'bad'],
  error: ['cross', 'bad'],
  unauthenticated: ['key', 'warn'],
  cancelled: ['dash', 'soft'],
}

export function OutcomeMark({
  outcome,
  note,
}: {
  readonly outcome: CallResultKind
  readonly note?: string | undefined
}) {
  const [shape, tone] = outcomeMarks[outcome] ?? outcomeMarks.error
  const word = texts.outcome[outcome] ?? outcome
  return <Mark shape={shape} tone={tone} word={note === undefined ? word : `${word}: ${note}`} />
}

const driftMarks: Readonly<Record<PinDriftState, readonly [Shape, Tone]>> = {
  changed: ['triangle', 'warn'],
  new: ['half', 'warn'],
  removed: ['dash', 'soft'],
}

/** Shows how a definition differs from the lock. */
export function DriftMark({ state }: { readonly state: PinDriftState }) {
  const [shape, tone] = driftMarks[state] ?? driftMarks.changed
  return <Mark shape={shape} tone={tone} word={texts.pins.states[state] ?? state} />
}

const pinMarks: Readonly<Record<ToolPinState, readonly [Shape, Tone]>> = {
  unpinned: ['ring', 'soft'],
  pinned: ['check', 'good'],
  new: ['half', 'plain'],
  changed: ['triangle', 'warn'],
}

export function PinMark({ pin }: { readonly pin: ToolPinState }) {
  const [shape, tone] = pinMarks[pin] ?? pinMarks.unpinned
  return <Mark shape={shape} tone={tone} word={texts.pin[pin] ?? pin} />
}
