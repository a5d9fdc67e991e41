import { flexRender, getCoreRowModel, useReactTable, type ColumnDef } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";

type Props<T> = {
  label: string;
  rows: T[];
  columns: ColumnDef<T>[];
  rowId: (row: T) => string;
  /** A field, or -field; columns whose id is in `sortable` can be sorted by the server. */
  sort?: string;
  onSort?: (sort: string) => void;
  sortable?: string[];
  hasMore?: boolean;
  isFetching?: boolean;
  onMore?: () => void;
};

const ROW = 41;
const AHEAD = 40;

/** A table of any length: only the rows in view exist, further ones are fetched as they are scrolled to. */
export function Grid<T>(props: Props<T>) {
  const { rows, hasMore = false, isFetching = false, onMore } = props;
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const shown = virtual.getVirtualItems();
  // The table knows the rows in view only: a model of tens of thousands is made anew with every page that comes.
  const [from, to] = [shown[0]?.index ?? 0, (shown[shown.length - 1]?.index ?? -1) + 1];
  const inView = useMemo(() => rows.slice(from, to), [rows, from, to]);
  const table = useReactTable({
    data: inView,
    columns: props.columns,
    getRowId: props.rowId,
    getCoreRowModel: getCoreRowModel(),
    manualSorting: true,
    manualPagination: true,
  });
  const last = shown[shown.length - 1]?.index ?? 0;
  useEffect(() => {
    if (hasMore && !isFetching && last >= rows.length - AHEAD) onMore?.();
  }, [hasMore, isFetching, last, rows.length, onMore]);

  const before = shown[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (shown[shown.length - 1]?.end ?? 0);
  const model = table.getRowModel().rows;
  const width = props.columns.length;
  return (
    <div className="grid" ref={box} tabIndex={0} role="region" aria-label={props.label}>
      <table aria-rowcount={hasMore ? -1 : rows.length + 1}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const field = header.column.id;
                const content = flexRender(header.column.columnDef.header, header.getContext());
                if (!props.sortable?.includes(field)) return <th key={header.id} scope="col">{content}</th>;
                const down = props.sort === `-${field}`;
                const up = props.sort === field;
                return (
                  <th key={header.id} scope="col" aria-sort={down ? "descending" : up ? "ascending" : "none"}>
                    <button type="button" className="plain" onClick={() => props.onSort?.(up ? `-${field}` : field)}>
                      {content} <span aria-hidden="true">{down ? "▾" : up ? "▴" : "↕"}</span>
                    </button>
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {before > 0 && <Gap height={before} width={width} />}
          {shown.map((item, i) => {
            const row = model[i];
            if (!row) return null;
            return (
              <tr key={row.id} aria-rowindex={item.index + 2}>
                {row.getVisibleCells().map((cell) => (
                  <td key={cell.id}>{flexRender(cell.column.columnDef.cell, cell.getContext())}</td>
                ))}
              </tr>
            );
          })}
          {after > 0 && <Gap height={after} width={width} />}
        </tbody>
      </table>
    </div>
  );
}

/** What is not drawn keeps its place. */
function Gap({ height, width }: { height: number; width: number }) {
  return (
    <tr aria-hidden="true" className="gap">
      <td colSpan={width} style={{ height }} />
    </tr>
  );
}
