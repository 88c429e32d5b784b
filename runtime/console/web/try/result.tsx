/** A tool's result: text as text, supported images as images, and everything else as JSON source. */
import { useState } from 'preact/hooks'
import { indented, readJson } from '../data/json-text.ts'
import { Notice } from '../parts/notices.tsx'
import { Foreign, LongText } from '../parts/text.tsx'
import { texts } from '../texts.ts'

const pictures = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif'])
const mostItems = 50

export function Result({ text, truncated }: { readonly text: string; readonly truncated: boolean }) {
  const [raw, setRaw] = useState(false)
  const content = raw ? undefined : contentOf(text)
  return (
    <div>
      <label class="check">
        <input
          type="checkbox"
          checked={raw}
          onChange={({ currentTarget }) => setRaw(currentTarget.checked)}
        />
        {texts.result.raw}
      </label>
      {truncated ? (
        <Notice tone="warn">
          <p>{texts.result.truncated}</p>
        </Notice>
      ) : undefined}
      {content === undefined ? (
        <LongText text={indented(text)} label={texts.result.title} code />
      ) : (
        content.slice(0, mostItems).map((item, i) => <Item key={i} item={item} />)
      )}
      {content !== undefined && content.length > mostItems ? (
        <p class="soft">{texts.result.more(content.length - mostItems)}</p>
      ) : undefined}
    </div>
  )
}

/** Returns the content items of a tool result, or undefined. */
function contentOf(text: string): readonly unknown[] | undefined {
  try {
    const { content, structuredContent } = readJson(text) as {
      readonly content?: unknown
      readonly structuredContent?: unknown
    }
    if (!Array.isArray(content) || content.length === 0) return undefined
    return structuredContent === undefined ? content : [...content, { type: 'structured', structuredContent }]
  } catch {
    return undefined
  }
}

function Item({ item }: { readonly item: unknown }) {
  const { type, text, data, mimeType } = (item ?? {}) as Readonly<Record<string, unknown>>
  if (type === 'text' && typeof text === 'string') return <LongText text={text} label={texts.result.text} />
  const isPicture = type === 'image' && typeof data === 'string' && pictures.has(String(mimeType))
  if (isPicture && /^[A-Za-z0-9+/=\s]+$/.test(data))
    return (
      <figure>
        <img src={`data:${String(mimeType)};base64,${data}`} alt={texts.result.picture} />
        <figcaption class="soft">
          <Foreign text={String(mimeType)} />
        </figcaption>
      </figure>
    )
  return <LongText text={indented(JSON.stringify(item))} label={texts.result.source} code />
}
