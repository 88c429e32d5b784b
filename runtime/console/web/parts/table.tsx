/**
 * Plain tables, which become cards on narrow screens. ARIA roles are explicit, because browsers drop table semantics
 * when the layout changes.
 */
import type { ComponentChildren, Key } from 'preact'

export interface Column<T> {
  readonly key: string
  readonly label: string
  readonly cell: (row: T) => ComponentChildren
  readonly number?: true
  /** True for the row header, which is a header cell and the title of the card. */
  readonly head?: true
  /**
   * Line of the two-line row that shows the column on phones. If a table has such columns, phones show only these
   * columns.
   */
  readonly phone?: 'first' | 'second'
  /** Makes the column take up the remaining width. */
  readonly wide?: true
}

export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
  below,
}: {
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => Key
  /** Content below a row, spanning its full width. */
  readonly below?: (row: T) => ComponentChildren
}) {
  const isShort = columns.some(({ phone }) => phone !== undefined)
  return (
    <table role="table" aria-label={label} class={isShort ? 'cards rows' : 'cards'}>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ key, label, number }) => (
            <th key={key} role="columnheader" scope="col" class={number ? 'number' : undefined}>
              {label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => {
          const more = below?.(row)
          return [
            <tr role="row" key={keyOf(row)} class={more ? 'open' : undefined}>
              {columns.map((column) => (
                <Cell key={column.key} column={column} row={row} />
              ))}
            </tr>,
            more ? (
              <tr role="row" class="below" key={`${String(keyOf(row))} below`}>
                <td role="cell" colSpan={columns.length}>
                  {more}
                </td>
              </tr>
            ) : undefined,
          ]
        })}
      </tbody>
    </table>
  )
}

function Cell<T>({ column, row }: { readonly column: Column<T>; readonly row: T }) {
  const { label, number, head, wide, phone, cell } = column
  const name = [number && 'number', wide && 'wide', phone].filter(Boolean).join(' ') || undefined
  if (head)
    return (
      <th role="rowheader" scope="row" class={name}>
        {cell(row)}
      </th>
    )
  return (
    <td role="cell" class={name} data-label={label}>
      <span>{cell(row)}</span>
    </td>
  )
}
