/**
 * Renders text from servers and clients as plain text. Isolates the text's direction, makes hidden characters visible,
 * and limits the length.
 */
import { useState } from 'preact/hooks'
import { type CallerView, mostReviewed } from '../../api.ts'
import { texts } from '../texts.ts'
import { count, fullTime, shortTime } from './format.ts'
import { piecesOf } from './hidden-characters.ts'

const longestName = 160
const firstChars = 4000
const moreChars = 40_000
const mostChars = mostReviewed

function Pieces({ text }: { readonly text: string }) {
  return (
    <>
      {piecesOf(text).map((piece) =>
        typeof piece === 'string' ? (
          piece
        ) : (
          <span class="hidden-char">
            {piece.code}
            {piece.count > 1 ? ` ×${count(piece.count)}` : ''}
          </span>
        ),
      )}
    </>
  )
}

/** A name or other short text, truncated if it is too long. */
export function Foreign({ text, most = longestName }: { readonly text: string; readonly most?: number }) {
  const cut = text.length > most
  return (
    <bdi class="foreign">
      <Pieces text={cut ? text.slice(0, most) : text} />
      {cut ? <span class="soft">{texts.text.cut(text.length)}</span> : undefined}
    </bdi>
  )
}

/** The caller, followed by the client that acts for it. */
export function CallerName({ caller = {} }: { readonly caller: CallerView | undefined }) {
  const { sub, name = sub, actor } = caller
  if (name === undefined) return <>–</>
  return (
    <>
      <Foreign text={name} most={60} />
      {actor === undefined ? undefined : (
        <span class="soft">
          {' '}
          {texts.calls.via} <Foreign text={actor} most={60} />
        </span>
      )}
    </>
  )
}

/** Text of any length, expandable in steps. `label` is the text's name for screen readers. */
export function LongText({
  text,
  label,
  code = false,
  whole = false,
}: {
  readonly text: string
  readonly label: string
  readonly code?: boolean
  /** Shows the whole text at once, for the review before an approval. */
  readonly whole?: boolean
}) {
  const [shown, setShown] = useState(whole ? mostReviewed : firstChars)
  const left = text.length - shown
  const pieces = <Pieces text={text.slice(0, shown)} />
  return (
    <div class="long-text">
      {code ? (
        // Makes the element focusable, because it scrolls.
        <pre class="code" tabIndex={0} role="region" aria-label={label} dir="ltr">
          {pieces}
        </pre>
      ) : (
        <div class="prose" role="group" aria-label={label} dir="auto">
          {pieces}
        </div>
      )}
      {left > 0 && shown < mostChars ? (
        <button type="button" onClick={() => setShown(shown + moreChars)}>
          {texts.text.more(Math.min(moreChars, left), left)}
        </button>
      ) : undefined}
      {left > 0 && shown >= mostChars ? <p class="soft">{texts.text.restIsNotShown(left)}</p> : undefined}
    </div>
  )
}

export function Time({ at, exact = false }: { readonly at: string; readonly exact?: boolean }) {
  return (
    <time dateTime={at} title={fullTime(at)}>
      {shortTime(at, exact ? 'seconds' : 'minutes')}
    </time>
  )
}
