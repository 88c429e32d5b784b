/** Form fields for a schema. Every field has a label, its rules as text, and its error next to it. */
import type { ComponentChildren } from 'preact'
import { Foreign } from '../parts/text.tsx'
import { texts } from '../texts.ts'
import { type ValueDraft, type DraftOf, draftOf, isOf, type MemberDraft } from './draft.ts'
import type { FieldPlan } from './plan.ts'

/** Length above which text is edited in a multi-line field. */
const shortChars = 80

interface Props {
  readonly draft: ValueDraft
  /** The field's name: the member's name, or its index in a list. */
  readonly name: string
  readonly required: boolean
  /** The checkbox that includes an optional member. */
  readonly box?: ComponentChildren
}

export function Field(props: Props) {
  const { draft } = props
  if (isOf(draft, 'object')) return <Group {...props}>{<ObjectFields draft={draft} />}</Group>
  if (isOf(draft, 'list')) return <Group {...props}>{<ListFields draft={draft} name={props.name} />}</Group>
  if (isOf(draft, 'choice'))
    return <Group {...props}>{<ChoiceFields draft={draft} name={props.name} />}</Group>
  if (isOf(draft, 'many')) return <Group {...props}>{<ManyFields draft={draft} />}</Group>
  return <Single {...props} draft={draft} />
}

/** The members of an object, rendered without a frame. */
export function ObjectFields({ draft }: { readonly draft: DraftOf<'object'> }) {
  if (draft.members.length === 0) return <p class="soft">{texts.form.noInput}</p>
  return (
    <>
      {draft.members.map((member) => (
        <MemberField key={member.name} member={member} />
      ))}
    </>
  )
}

function MemberField({ member }: { readonly member: MemberDraft }) {
  const { name, required, included, draft } = member
  if (required) return <Field draft={draft} name={name} required />
  const box = (
    <label class="check include">
      <input
        type="checkbox"
        checked={included.value}
        aria-label={texts.form.include(name)}
        onChange={({ currentTarget }) => (included.value = currentTarget.checked)}
      />
      <span aria-hidden="true">{texts.form.send}</span>
    </label>
  )
  return (
    // Typing into an optional field includes the field in the input.
    <div
      class={included.value ? 'optional' : 'optional out'}
      onInput={({ target }) => {
        if (!(target instanceof Element && target.closest('.include'))) included.value = true
      }}
    >
      <Field draft={draft} name={name} required={false} box={box} />
    </div>
  )
}

function Group({ draft, name, required, box, children }: Props & { readonly children: ComponentChildren }) {
  const { id, problem, plan } = draft
  return (
    <fieldset aria-describedby={`${id}-hint`} class="field">
      <legend>
        <Label plan={plan} name={name} required={required} />
      </legend>
      {box}
      <Hint id={id} plan={plan} problem={problem.value} />
      <div class="inner">{children}</div>
    </fieldset>
  )
}

type SingleDraft = DraftOf<'text' | 'number' | 'json' | 'flag' | 'null' | 'options'>

function Single({ draft, name, required, box }: Props & { readonly draft: SingleDraft }) {
  const { id, problem, plan } = draft
  return (
    <div class="field">
      <div class="label">
        <label for={id}>
          <Label plan={plan} name={name} required={required} />
        </label>
        {box}
      </div>
      <Control draft={draft} required={required} />
      <Hint id={id} plan={plan} problem={problem.value} />
    </div>
  )
}

function Label({
  plan,
  name,
  required,
}: {
  readonly plan: FieldPlan
  readonly name: string
  readonly required: boolean
}) {
  const title = plan.title === name ? undefined : plan.title
  return (
    <>
      <code>
        <Foreign text={name} most={80} />
      </code>
      {required ? <span class="bad"> *</span> : undefined}
      {title === undefined ? undefined : (
        <span>
          {' '}
          <Foreign text={title} most={80} />
        </span>
      )}
      <span class="soft">
        {' '}
        {texts.form.kinds[plan.kind === 'number' && plan.integer ? 'integer' : plan.kind]}
      </span>
    </>
  )
}

function Hint({
  id,
  plan,
  problem,
}: {
  readonly id: string
  readonly plan: FieldPlan
  readonly problem: string | undefined
}) {
  const rules = plan.rules.join(', ')
  return (
    <div id={`${id}-hint`} class="hint">
      {plan.kind === 'json' ? <p>{texts.form.why[plan.why]}</p> : undefined}
      {plan.description === undefined ? undefined : (
        <p>
          <Foreign text={plan.description} most={500} />
        </p>
      )}
      {rules === '' ? undefined : (
        <p>
          <Foreign text={rules} most={300} />
        </p>
      )}
      {problem === undefined ? undefined : (
        <p class="bad">
          <Foreign text={problem} most={300} />
        </p>
      )}
    </div>
  )
}

function Control({ draft, required }: { readonly draft: SingleDraft; readonly required: boolean }) {
  const { id, problem } = draft
  const common = {
    id,
    'aria-describedby': `${id}-hint`,
    'aria-invalid': problem.value !== undefined,
    'aria-required': required,
  } as const
  if (isOf(draft, 'null')) return <input {...common} value="null" readOnly />
  if (isOf(draft, 'flag'))
    return (
      <select
        {...common}
        value={String(draft.on.value)}
        onInput={({ currentTarget }) => (draft.on.value = currentTarget.value === 'true')}
      >
        <option value="false">false</option>
        <option value="true">true</option>
      </select>
    )
  if (isOf(draft, 'options'))
    return (
      <select
        {...common}
        value={String(draft.index.value)}
        onInput={({ currentTarget }) => (draft.index.value = Number(currentTarget.value))}
      >
        <option value="-1">{texts.form.choose}</option>
        {draft.plan.options.map(({ label }, i) => (
          <option key={i} value={String(i)}>
            {label.slice(0, 100)}
          </option>
        ))}
      </select>
    )
  return <Written draft={draft} common={common} />
}

function Written({
  draft,
  common,
}: {
  readonly draft: DraftOf<'text' | 'number' | 'json'>
  readonly common: object
}) {
  const { plan, text } = draft
  const write = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void => {
    text.value = currentTarget.value
  }
  const shared = {
    ...common,
    value: text.value,
    onInput: write,
    spellcheck: false,
    autocomplete: 'off',
  } as const
  if (plan.kind === 'json') return <textarea {...shared} class="json" rows={3} />
  if (plan.kind === 'number') return <input {...shared} inputMode={plan.integer ? 'numeric' : 'decimal'} />
  if (plan.kind === 'text' && plan.max <= shortChars) return <input {...shared} />
  if (plan.format === 'date') return <input {...shared} type="date" />
  return <textarea {...shared} class="grow" rows={1} />
}

function ManyFields({ draft }: { readonly draft: DraftOf<'many'> }) {
  const { chosen, plan } = draft
  return (
    <div class="buttons">
      {plan.options.map(({ label }, i) => (
        <label key={i} class="check">
          <input
            type="checkbox"
            checked={chosen.value.includes(i)}
            onInput={({ currentTarget }) => {
              const others = chosen.value.filter((one) => one !== i)
              chosen.value = currentTarget.checked ? [...others, i].toSorted((a, b) => a - b) : others
            }}
          />
          <Foreign text={label} most={100} />
        </label>
      ))}
    </div>
  )
}

function ChoiceFields({ draft, name }: { readonly draft: DraftOf<'choice'>; readonly name: string }) {
  const { plan, index, inner, id } = draft
  const choose = (i: number): void => {
    const option = plan.options[i]
    if (!option) return
    index.value = i
    inner.value = draftOf(option.plan())
  }
  const one = inner.value
  return (
    <>
      <select
        id={id}
        aria-label={texts.form.variant(name)}
        value={String(index.value)}
        onInput={({ currentTarget }) => choose(Number(currentTarget.value))}
      >
        {plan.options.map(({ label }, i) => (
          <option key={i} value={String(i)}>
            {label.slice(0, 100)}
          </option>
        ))}
      </select>
      {isOf(one, 'null') ? undefined : isOf(one, 'object') ? (
        <ObjectFields key={one.id} draft={one} />
      ) : (
        <Field key={one.id} draft={one} name={plan.options[index.value]?.label ?? name} required={false} />
      )}
    </>
  )
}

function ListFields({ draft, name }: { readonly draft: DraftOf<'list'>; readonly name: string }) {
  const { items, plan } = draft
  const remove = (item: ValueDraft): void => {
    items.value = items.value.filter((one) => one !== item)
  }
  return (
    <>
      {items.value.map((item, i) => (
        <div class="item" key={item.id}>
          <Field draft={item} name={`${name}[${i}]`} required />
          <button
            type="button"
            aria-label={texts.form.removeItem(`${name}[${i}]`)}
            onClick={() => remove(item)}
          >
            {texts.form.remove}
          </button>
        </div>
      ))}
      <button
        type="button"
        disabled={items.value.length >= plan.max}
        aria-label={texts.form.addItem(name)}
        onClick={() => (items.value = [...items.value, draftOf(plan.item())])}
      >
        {texts.form.add}
      </button>
    </>
  )
}
