import { createTwoFilesPatch } from 'diff'

/** Returns a unified diff of two texts, or '' when they are equal. Undefined stands for a file that does not exist. */
export function textDiff(file: string, before: string | undefined, after: string): string {
  if (before === after) return ''
  const from = before === undefined ? '/dev/null' : file
  return createTwoFilesPatch(from, file, before ?? '', after, '', '', { context: 2 })
    .replace(/^Index:.*\n=+\n/, '')
    .replace(/^=+\n/, '')
    .replaceAll(/\t?\r?$/gm, '')
}
