const LARGEST = 1_400_000; // what one request holds, in base64
const SIDE = 768;

/** A photograph too large for a request, shrunk to more than any network looks at; every other one as it is. */
export async function shrunk(picture: Blob): Promise<Blob> {
  if (picture.size <= LARGEST) return picture;
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(picture);
  } catch {
    return picture; // a kind that this browser cannot read: the server says what it thinks of it
  }
  const scale = Math.min(1, SIDE / Math.max(bitmap.width, bitmap.height));
  const sheet = new OffscreenCanvas(
    Math.max(1, Math.round(bitmap.width * scale)),
    Math.max(1, Math.round(bitmap.height * scale)),
  );
  sheet.getContext("2d")!.drawImage(bitmap, 0, 0, sheet.width, sheet.height);
  bitmap.close();
  return sheet.convertToBlob({ type: "image/jpeg", quality: 0.92 });
}
