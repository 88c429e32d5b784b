/** Methods of bytes. */
import { positional } from './arguments.ts'
import type { Methods } from './method.ts'
import { type Bytes, TextView } from '../values/scalars.ts'

export const bytesMethods: Methods<Bytes> = {
  elems({ data }, call) {
    positional(call, 0, 0)
    return new TextView(data, 'elems', { ofBytes: true })
  },
}
