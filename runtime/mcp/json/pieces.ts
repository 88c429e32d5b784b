/** Pieces of JSON that is put together from bytes. They are shared: nobody writes into them. */
export const comma: Buffer = Buffer.from(',')
export const arrayStart: Buffer = Buffer.from('[')
export const arrayEnd: Buffer = Buffer.from(']')
export const objectStart: Buffer = Buffer.from('{')
export const objectEnd: Buffer = Buffer.from('}')
export const emptyObjectBytes: Buffer = Buffer.from('{}')
